// The identity that a device gets by pairing: as the gateway returns it, and as the agent uses it.
import { z } from "zod";

/** A device with its identity: everything an agent needs. */
export interface PairedDevice {
  readonly deviceId: string;
  readonly agentId: string;
  readonly tenantId: string;
  readonly secret: string;
  readonly fingerprint: string;
}

/** The response to pairing, parsed tolerantly: ids are opaque, and only fields that the agent needs are required. */
export const IssuedIdentity = z.object({
  device_id: z.string().min(1),
  agent_id: z.string().min(1),
  tenant_id: z.string().min(1),
  shared_secret: z.string().min(1),
  fingerprint: z.string().catch(""),
  infrastructure_secrets: z.record(z.string(), z.string()).catch({}),
  /** Where the socket is, and the random delay before the first connect. */
  connect: z
    .object({ url: z.string(), coldStartMs: z.number().min(0) })
    .partial()
    .catch({}),
});
type IssuedIdentity = z.infer<typeof IssuedIdentity>;

/** As it stands in a file: `curl` keeps the answer with its envelope. */
export const StoredIdentity = z.union([z.object({ data: IssuedIdentity }).transform(({ data }) => data), IssuedIdentity]);

export const toPairedDevice = (given: IssuedIdentity): PairedDevice => ({
  deviceId: given.device_id,
  agentId: given.agent_id,
  tenantId: given.tenant_id,
  secret: given.shared_secret,
  fingerprint: given.fingerprint,
});
