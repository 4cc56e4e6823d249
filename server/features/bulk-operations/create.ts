// Makes bulk operations: checks what the caller wants and may do, counts the targets, and freezes them or leaves that to the steps.
import { type BulkPreview, type BulkThreshold, type contract, type Details, targetOf } from "../../../protocol/index.ts";
import { isLimited, permissionsIn } from "../../core/access.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { readCall } from "../../core/own-calls.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { fleetOf, freeze } from "./freeze.ts";
import { requireLimits } from "./limits.ts";
import type { PerformDeps } from "./perform.ts";
import { type BulkEntry, REGISTRY } from "./registry.ts";
import { BULK } from "./stepper.ts";
import { insertItems } from "./store/items.ts";
import { type BulkRow, findBulk, insertBulk, type NewBulk, toBulkOperation, updateBulk } from "./store/operations.ts";
import { type Creation, type Finders, findTargets, idsOf, targetRecord } from "./targets.ts";

export interface CreateDeps extends Pick<FeatureKit, "db" | "clock" | "many" | "plan">, Pick<PerformDeps, "handlers" | "devices" | "checkOrder"> {
  readonly finders: Finders;
}

type H = Handlers<typeof contract.bulkOperations>;

type Asked = Pick<Creation, "operation" | "params" | "target">;

const DAY = 86_400;
const MAX_START_DAYS = 30;
const MAX_EXPIRY_DAYS = 60;
const EXPIRY_DAYS = 7;
const SAMPLE = 100;
const CAREFUL: BulkThreshold = { percent: 10, count: null, minSample: null };

const invalid = (path: string, message: string, details: Details = {}): AppError =>
  new AppError("VALIDATION_FAILED", { details: { ...details, issues: [{ path, code: "custom", message }] } });

/** What the single call would refuse, refused before anything is made. */
export const requirePermission = (scope: TenantScope, { permission, unlimitedOnly }: BulkEntry): void => {
  const isRefused = unlimitedOnly === true && isLimited(scope);
  if (!permissionsIn(scope).has(permission) || isRefused)
    throw new AppError("FORBIDDEN", { details: { requiredPermission: permission, ...(isLimited(scope) ? { reason: "limited_access" } : {}) } });
};

/** The times of an operation, within their bounds. */
const timesOf = ({ startAt, expiresAt }: Creation, now: Date): { readonly startAt: Date | null; readonly expiresAt: Date } => {
  const start = startAt === undefined ? null : new Date(startAt);
  if (start !== null && start > secondsFromNow(MAX_START_DAYS * DAY, now)) throw invalid("startAt", `must lie at most ${MAX_START_DAYS} days ahead`);
  const from = start === null || start < now ? now : start;
  const end = expiresAt === undefined ? secondsFromNow(EXPIRY_DAYS * DAY, from) : new Date(expiresAt);
  if (end <= from) throw invalid("expiresAt", "must lie after the start");
  if (end > secondsFromNow(MAX_EXPIRY_DAYS * DAY, now)) throw invalid("expiresAt", `must lie at most ${MAX_EXPIRY_DAYS} days ahead`);
  return { startAt: start, expiresAt: end };
};

export const requireConfirmed = (entry: BulkEntry, params: Readonly<Record<string, unknown>>, found: number): void => {
  if (entry.confirmed?.(params as never) !== true || params["confirm"] === found) return; // as: checked by its schema
  throw invalid("params.confirm", `must be the number of devices, which is ${found}`, { reason: "not_confirmed", found });
};

type Selector = Parameters<typeof targetRecord>[1];
interface Found {
  readonly total: number;
  readonly target: BulkRow["target"];
  readonly sample: BulkPreview["sample"];
  readonly unseen: readonly string[];
  /** The ids with what keeps each from being done; null: the steps freeze them. */
  readonly targets: readonly (readonly [string, string | null])[] | null;
}

interface Checked {
  readonly entry: BulkEntry;
  readonly params: Readonly<Record<string, unknown>>;
  readonly found: Found;
  readonly startAt: Date | null;
  readonly expiresAt: Date;
}

const firstStatus = ({ target, targets }: Found): BulkRow["status"] => (target.kind === "upload" ? "draft" : targets === null ? "freezing" : "pending");
const thresholdOf = (given: Creation["failureThreshold"], { stops }: BulkEntry): BulkThreshold | null =>
  given === undefined ? (stops === true ? CAREFUL : null) : given;

const newRow = (scope: TenantScope, input: Creation, { entry, params, found, startAt, expiresAt }: Checked): NewBulk => {
  const total = found.targets?.length ?? 0;
  return {
    operationId: newId("blk"),
    operation: input.operation,
    params,
    name: input.name ?? null,
    target: found.target,
    await: input.await,
    maxParallel: input.maxParallel,
    failureThreshold: thresholdOf(input.failureThreshold, entry),
    perMinute: input.rate?.perMinute ?? null,
    status: firstStatus(found),
    counts: { total, pending: total - found.unseen.length, skipped: found.unseen.length },
    startAt,
    expiresAt,
    retryCodes: [],
    retryOf: null,
    createdBy: actorOf(scope.principal),
  };
};

export const createMaking = (deps: CreateDeps): Pick<H, "create" | "preview"> => {
  const { clock, many, devices, handlers, finders } = deps;

  /** What the parameters refer to must be there, as for a single call. */
  const checkReferences = async (scope: TenantScope, { operation, params }: Asked): Promise<void> => {
    const call = readCall(scope);
    if (operation === "device.command") deps.checkOrder(scope, REGISTRY["device.command"].params.parse(params));
    if (operation === "device.move") await handlers.deployments.get(call, REGISTRY["device.move"].params.parse(params));
    if (operation !== "device.fleet") return;
    const { add, remove } = REGISTRY["device.fleet"].params.parse(params);
    for (const fleetId of [...add, ...remove]) await handlers.fleets.get(call, { fleetId });
  };

  const ofFleet = async (tx: Tx, scope: TenantScope, target: BulkRow["target"]): Promise<Found> => {
    const fleet = fleetOf(target);
    const [total, first] = [await devices.count(tx, scope, fleet), await devices.after(tx, scope, fleet, { after: "", limit: SAMPLE })];
    const names = await finders.device(tx, scope, first);
    return { total, target, sample: first.map((targetId) => ({ targetId, name: names.get(targetId) ?? null })), unseen: [], targets: null };
  };

  /** Null: the target names no devices by what they are. */
  const selectorOf = async (scope: TenantScope, { target }: Asked): Promise<Selector> =>
    target.fleetId === undefined ? (target.selector ?? null) : (await handlers.fleets.get(readCall(scope), { fleetId: target.fleetId })).selector;

  const find = async (tx: Tx, scope: TenantScope, { operation, target }: Asked, selector: Selector): Promise<Found> => {
    if (target.upload === true) return { total: 0, target: targetRecord(target, null), sample: [], unseen: [], targets: null };
    if (target.fleetId !== undefined || target.selector !== undefined) return ofFleet(tx, scope, targetRecord(target, selector));
    const kind = targetOf(operation);
    const { ids, seen } = await findTargets(finders[kind], tx, scope, idsOf(target, kind));
    return {
      total: seen.size,
      target: targetRecord(target, null),
      sample: ids
        .filter((id) => seen.has(id))
        .slice(0, SAMPLE)
        .map((targetId) => ({ targetId, name: seen.get(targetId) ?? null })),
      unseen: ids.filter((id) => !seen.has(id)),
      targets: ids.map((id) => [id, seen.has(id) ? null : "NOT_FOUND"]),
    };
  };

  const begin = async (tx: Tx, scope: TenantScope, made: NewBulk, { targets }: Found): Promise<BulkRow> => {
    const { operationId } = made;
    const row = await insertBulk(tx, scope, made);
    if (targets !== null) await insertItems(tx, scope, { operationId, after: 0, targets });
    if (row.status === "freezing" && row.target.kind !== "upload") {
      const { added, frozenTo } = await freeze(devices, tx, scope, row);
      const counts = { ...row.counts, total: added, pending: added };
      await updateBulk(tx, scope, operationId, { counts, frozenTo, ...(frozenTo === null ? { status: "pending" as const } : {}) });
    }
    await many.begin(tx, scope, { recordId: operationId, kind: BULK, priority: 2, stepAt: row.status === "draft" ? row.expiresAt : null });
    return (await findBulk(tx, scope, operationId)) ?? row;
  };

  return {
    preview: async ({ scope }, input) => {
      requirePermission(scope, REGISTRY[input.operation] as BulkEntry); // as: each entry takes its own parameters
      await checkReferences(scope, input);
      const selector = await selectorOf(scope, input);
      const { total, sample, unseen } = await deps.db.tx((tx) => find(tx, scope, input, selector));
      return { total, sample, refused: unseen.length === 0 ? {} : { NOT_FOUND: unseen.length } };
    },
    create: async ({ scope, commit, fail }, input) => {
      const { operation } = input;
      const entry = REGISTRY[operation] as BulkEntry; // as: each entry takes its own parameters
      requirePermission(scope, entry);
      const times = timesOf(input, clock.now());
      const params = entry.params.parse(input.params) as Record<string, unknown>;
      await checkReferences(scope, input);
      const selector = await selectorOf(scope, input);
      return commit(async (tx, afterwards) => {
        const found = await find(tx, scope, input, selector);
        const isUpload = found.target.kind === "upload";
        if (found.total === 0 && !isUpload) throw fail("BULK_NO_TARGETS");
        if (!isUpload) requireConfirmed(entry, params, found.total);
        await requireLimits(deps, tx, scope, found.total + found.unseen.length);
        const row = await begin(tx, scope, newRow(scope, input, { entry, params, found, ...times }), found);
        afterwards(many.hint);
        return toBulkOperation(row);
      });
    },
  };
};
