// Freezes the items of an operation: those that its creator sees at that moment.
import { FleetSelector } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { DeviceTargets } from "../devices/index.ts";
import { copyFailed, insertItems } from "./store/items.ts";
import type { BulkRow } from "./store/operations.ts";

/** Items that one transaction freezes. */
export const FREEZE = 10_000;

export interface Frozen {
  readonly added: number;
  readonly last: number;
  /** Null: all are frozen. */
  readonly frozenTo: string | null;
}

const emptySelector = { tags: [], platform: null, agentVersion: null, status: null };

/** What a fleet or a selector selects. The selector of a dynamic fleet is copied when the operation is made. */
export const fleetOf = ({ fleetId, selector }: BulkRow["target"]) => ({
  fleetId: fleetId ?? "",
  selector: selector === null ? null : FleetSelector.parse({ ...emptySelector, ...selector }),
});

/** Freezes the next part. */
export const freeze = async (devices: DeviceTargets, tx: Tx, scope: TenantScope, row: BulkRow): Promise<Frozen> => {
  const { operationId, counts, retryOf } = row;
  if (row.target.kind === "retry") {
    const after = Number(row.frozenTo ?? 0);
    const { count, last } = await copyFailed(tx, scope, { to: operationId, from: retryOf ?? "", after, codes: row.retryCodes, limit: FREEZE });
    return { added: count, last, frozenTo: count < FREEZE ? null : String(last) };
  }
  const ids = await devices.after(tx, scope, fleetOf(row.target), { after: row.frozenTo ?? "", limit: FREEZE });
  const { pending } = await insertItems(tx, scope, { operationId, after: counts.total, targets: ids.map((targetId) => [targetId, null]) });
  return { added: pending, last: counts.total + ids.length, frozenTo: ids.length < FREEZE ? null : (ids.at(-1) ?? null) };
};
