// The identity of a device that was provisioned, with its secret.
import { z } from "zod";
import { AgentId, DeviceId, TenantId } from "../../kit/ids.ts";
import { ConnectPlan } from "./connect-plan.ts";

export const ProvisionedDevice = z.object({
  device_id: DeviceId,
  agent_id: AgentId,
  tenant_id: TenantId,
  shared_secret: z.string(),
  fingerprint: z.string(),
  connect: ConnectPlan.optional(),
});
