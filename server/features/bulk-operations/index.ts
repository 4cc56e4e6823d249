// Bulk operations: one change of many devices, apps, deployments or others. The way of one:
//
// 1. create.ts checks what the caller may do and freezes the targets that the caller sees, or upload.ts takes them in parts.
// 2. stepper.ts is a kind of work of the engine in core/many: each step ends the items whose commands have ended, judges, begins the next slice with the
//    access that the creator has now (core/people/present-access.ts), and writes items and counters in one transaction.
// 3. registry.ts says what an operation does with a slice: perform-alone.ts by the handlers of the single calls, perform-together.ts in few statements.
import { contract, type OverviewChange } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import { implement } from "../../core/feature.ts";
import { type AccessDeps, createPresentAccess } from "../../core/people/present-access.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createChanges } from "./changes.ts";
import { type CreateDeps, createMaking } from "./create.ts";
import type { PerformDeps } from "./perform.ts";
import { createReads, ownOf } from "./reads.ts";
import { createStepper, type StepperDeps } from "./stepper.ts";
import { deleteOldItems } from "./store/items.ts";
import { type BulkRow, deleteOldBulks, findBulksUnderWay } from "./store/operations.ts";
import { createUpload } from "./upload.ts";

export interface BulkDeps
  extends Pick<FeatureKit, "db" | "clock" | "emit" | "audit" | "many" | "plan" | "until">,
    PerformDeps,
    AccessDeps,
    Pick<CreateDeps, "finders">,
    Pick<StepperDeps, "statesOf"> {}

const KEEP_ITEMS_DAYS = 30;
const KEEP_DAYS = 400;
const FORGOTTEN_AT_ONCE = 5_000;

export interface BulkFeature extends Feature<typeof contract.bulkOperations> {
  /** Operations that have not ended, the newest first; of a limited caller only the caller's own. */
  readonly underWay: (scope: TenantScope, limit: number) => Promise<readonly OverviewChange[]>;
}

const changeOf = ({ operationId: id, name, operation, status, counts }: BulkRow): OverviewChange => {
  const { total, pending, running, failed } = counts;
  return { kind: "bulkOperation", id, name: name ?? operation, status, phase: null, phases: null, done: total - pending - running, failed, total };
};

export const createBulkOperations = (deps: BulkDeps): BulkFeature => {
  const { db, clock } = deps;
  const ago = (days: number): Date => secondsFromNow(-days * DAY_SECONDS, clock.now());
  const forget = async (): Promise<boolean> => {
    const [items, operations] = [await deleteOldItems(db, ago(KEEP_ITEMS_DAYS), FORGOTTEN_AT_ONCE), await deleteOldBulks(db, ago(KEEP_DAYS))];
    return items || operations;
  };
  return {
    handlers: implement(contract.bulkOperations, { ...createReads(deps), ...createMaking(deps), ...createChanges(deps), ...createUpload(deps) }),
    underWay: async (scope, limit) => (await findBulksUnderWay(db, scope, limit, ownOf(scope))).map(changeOf),
    steppers: [createStepper({ ...deps, access: createPresentAccess(deps) })],
    jobs: [{ name: "bulk-operations.forget", everyMs: 600_000, run: forget }],
  };
};
