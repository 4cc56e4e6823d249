// Holding a record at the version that a caller has read, for changes that take no version themselves; platform/database/tenant-client.ts does it.
import type { Tx } from "../database.ts";
import type { OpenScope } from "../scope.ts";

export interface HeldRecord {
  /** The field of the input that names the record, which is also the id's column. */
  readonly field: string;
  readonly versions: readonly number[];
}

/** Rejects with VERSION_CONFLICT unless the record has one of the versions, and keeps others from changing it until the transaction ends. */
export type HoldVersion = (tx: Tx, scope: OpenScope, held: HeldRecord, input: unknown) => Promise<void>;
