// The identity that pairing gives a device: as the gateway answers it, and as the agent keeps it.
import { z } from "zod";

/** A device with its identity: all that an agent needs. */
export interface Member {
  readonly deviceId: string;
  readonly agentId: string;
  readonly tenantId: string;
  readonly secret: string;
  readonly fingerprint: string;
}

/** What pairing answers, read as an agent reads it: ids are opaque, and only what it cannot do without must be there. */
export const Identity = z.object({
  device_id: z.string().min(1),
  agent_id: z.string().min(1),
  tenant_id: z.string().min(1),
  shared_secret: z.string().min(1),
  fingerprint: z.string().catch(""),
  infrastructure_secrets: z.record(z.string(), z.string()).catch({}),
  /** Where the socket is, and within how long a process that has just started connects. */
  connect: z
    .object({ url: z.string(), coldStartMs: z.number().min(0) })
    .partial()
    .catch({}),
});
type Identity = z.infer<typeof Identity>;

export const toMember = (given: Identity): Member => ({
  deviceId: given.device_id,
  agentId: given.agent_id,
  tenantId: given.tenant_id,
  secret: given.shared_secret,
  fingerprint: given.fingerprint,
});
