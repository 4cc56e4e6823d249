// The records that the samples refer to.
import type { Caller, Device, TestTenant, World } from "../kit/gateway/world.ts";

/** A tenant with one of everything. */
export interface Stock {
  readonly world: World;
  readonly tenant: TestTenant;
  readonly owner: Caller;
  readonly operator: Caller;
  /** A person whom no other test signs out, by the cookie of a session. */
  readonly session: Caller;
  readonly device: Device;
  readonly pairingCode: string;
}
