// The targets that somebody names, as far as that person sees them.

import type { z } from "zod";
import { BULK_ID_FIELDS, type BulkTargetKind, type contract } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import type { BulkRow } from "./store/operations.ts";

export type Creation = z.output<typeof contract.bulkOperations.operations.create.input>;
export type FindNamed = (db: Clients, scope: SystemScope, ids: readonly string[]) => Promise<ReadonlyMap<string, string | null>>;
/** How to look for targets of each kind. */
export type Finders = Readonly<Record<BulkTargetKind, FindNamed>>;

/** Ids in one statement. */
const CHUNK = 1_000;

export interface NamedTargets {
  /** In the order in which they were named, each once. */
  readonly ids: readonly string[];
  readonly seen: ReadonlyMap<string, string | null>;
}

export const idsOf = (target: Creation["target"], kind: BulkTargetKind): readonly string[] => [...new Set(target[BULK_ID_FIELDS[kind]] ?? [])];

export const findTargets = async (find: FindNamed, db: Clients, scope: TenantScope, ids: readonly string[]): Promise<NamedTargets> => {
  const seen = new Map<string, string | null>();
  for (let from = 0; from < ids.length; from += CHUNK) for (const [id, name] of await find(db, scope, ids.slice(from, from + CHUNK))) seen.set(id, name);
  return { ids, seen };
};

/** How the record says that the targets were chosen. */
export const targetRecord = (target: Creation["target"], selector: object | null): BulkRow["target"] => ({
  kind: target.upload === true ? "upload" : target.fleetId !== undefined ? "fleet" : target.selector !== undefined ? "selector" : "ids",
  fleetId: (target.fleetId ?? null) as BulkRow["target"]["fleetId"], // as: a fleet that was found
  selector: selector as BulkRow["target"]["selector"], // as: parsed JSON
});
