// The store that keeps answers under idempotency keys, as the gateway uses it.
import type { SqlTx } from "../events.ts";

export interface IdempotentCall {
  /** Null outside of tenants. */
  readonly tenantId: string | null;
  /** Principal, operation and key. */
  readonly scope: string;
  /** SHA-256 of the request. */
  readonly fingerprint: Uint8Array;
}

export interface StoredAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Why the call must not run. */
export type KnownCall =
  | ({ readonly kind: "replay" } & StoredAnswer)
  | { readonly kind: "reused"; readonly firstSeenAt: Date }
  | { readonly kind: "in_progress" };

export interface IdempotencyStore {
  /** Reads a committed answer. Null decides nothing: only `claim` does. */
  find(call: IdempotentCall): Promise<KnownCall | null>;
  /**
   * Null when the transaction may go on; until it ends, no other transaction gets null for this key. A transaction whose COMMIT got no answer counts as
   * in progress until PostgreSQL has ended it.
   */
  claim(tx: SqlTx, call: IdempotentCall): Promise<KnownCall | null>;
  /** Writes the answer in the transaction that has claimed the key. */
  keep(tx: SqlTx, call: IdempotentCall, answer: StoredAnswer): Promise<void>;
}
