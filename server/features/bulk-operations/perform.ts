// What a step hands to an operation, and gets back for each item.
import type { Contract } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { Handlers } from "../../core/feature.ts";
import type { EnqueueEach } from "../../core/ports/delivery.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import type { Commands } from "../commands/index.ts";
import type { DeviceTargets } from "../devices/index.ts";
import type { ItemRef, ItemResult } from "./store/items.ts";
import type { BulkRow } from "./store/operations.ts";

/** The groups whose calls work in bulk. */
export type SingleGroup = "devices" | "fleets" | "apps" | "deployments" | "alerts" | "backups" | "tunnels";
export type SingleHandlers = { readonly [G in SingleGroup]: Handlers<Contract[G]> };

export interface PerformDeps {
  readonly handlers: SingleHandlers;
  readonly enqueueEach: EnqueueEach;
  readonly checkOrder: Commands["checkOrder"];
  readonly devices: DeviceTargets;
  readonly holdUndelivered: Commands["holdUndelivered"];
  /** The device that an app is on; null: there is no such app, or none that the caller sees. */
  readonly deviceOf: (db: Clients, scope: SystemScope, appId: string) => Promise<string | null>;
  /** The command of the target's last change. */
  readonly commandOf: { readonly [K in "app" | "deployment"]: (tx: Tx, scope: TenantScope, targetId: string) => Promise<string | null> };
}

/** One slice of items. */
export interface Slice {
  readonly row: BulkRow;
  /** The creator, with the access of this moment. */
  readonly scope: TenantScope;
  readonly items: readonly ItemRef[];
  /** False: answer for no more items. */
  readonly hasTime: () => boolean;
  /** For hints after the commit. */
  readonly afterwards: (hint: () => void) => void;
}

/** Answers in the order of the items, and for fewer if the time is up or the tenant's queue is full. */
export type BulkWork = (deps: PerformDeps, tx: Tx, slice: Slice) => Promise<readonly ItemResult[]>;

/** A target that was frozen with the creator's sight, and is out of it now; otherwise one answer for unknown and unseen ones. */
export const notSeen = ({ row, scope }: Pick<Slice, "row" | "scope">): ItemResult => ({
  status: "skipped",
  code: isLimited(scope) && row.target.kind !== "upload" ? "NOT_VISIBLE" : "NOT_FOUND",
});
