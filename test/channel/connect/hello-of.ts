// The hello of a device after its proof was checked, as the gateway passes it to the features.
import { newId } from "../../../server/core/ids.ts";
import type { SessionHello } from "../../../server/core/ports/agent-sessions.ts";
import type { TestDevice } from "../harness.ts";

export const helloOf = ({ tenantId, deviceId }: TestDevice, nodeId: string, more: Partial<SessionHello> = {}): SessionHello => ({
  device: { tenantId, deviceId },
  nodeId,
  sessionId: newId("ses"),
  instanceId: null,
  handoffFrom: null,
  clockOffsetMs: null,
  inFlight: [],
  journal: true,
  listsAll: true,
  cancels: true,
  maxInFlight: 8,
  locksSignature: false,
  machine: { hostname: `host-${deviceId}` },
  ...more,
});
