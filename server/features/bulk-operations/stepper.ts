// How a bulk operation goes on: one step of the engine freezes a part of its items, or ends those whose commands have ended and begins the next slice.
import { type BulkCounts, type BulkItemStatus, contract, type DeviceId, isOpen } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { type DurableEvent, type Happened, happened } from "../../core/events.ts";
import { exceeds } from "../../core/many/threshold.ts";
import { type ManyKind, SLICE, type StepFacts, stepperOf } from "../../core/many/types.ts";
import type { PresentAccess } from "../../core/people/present-access.ts";
import { type AuditTrail, auditActorOf } from "../../core/ports/audit.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { Commands } from "../commands/index.ts";
import type { FeatureKit } from "../kit.ts";
import { freeze } from "./freeze.ts";
import type { PerformDeps } from "./perform.ts";
import { type BulkEntry, REGISTRY } from "./registry.ts";
import { goesOn, isFinal } from "./states.ts";
import { cancelPending, type ItemResult, pendingItems, runningItems, type WrittenItem, writeItems } from "./store/items.ts";
import { type BulkRow, countOthersRunning, lockBulk, updateBulk } from "./store/operations.ts";

export const BULK = "bulk";
/** The most operations of one tenant that run at once; others wait. */
const RUNNING_AT_ONCE = 2;
/** Pending items that one step cancels. */
const CANCELLED_AT_ONCE = 10_000;
/** Slices that order commands follow each other no faster: their agents have to work. Changes of rows go on at once. */
const PACE_SECONDS = 1;
/** Ends of commands are looked for so often; a step costs little while nothing has ended. */
const LOOK_SECONDS = 1;
const WAIT_SECONDS = 5;
const MINUTE = 60;

export interface StepperDeps extends PerformDeps, Pick<FeatureKit, "emit"> {
  readonly audit: AuditTrail;
  readonly access: PresentAccess;
  readonly statesOf: Commands["statesOf"];
}

/** An operation within one step. */
interface Work {
  readonly row: BulkRow;
  readonly entry: BulkEntry;
  /** Null: the creator has lost the access. */
  readonly scope: TenantScope | null;
  readonly before: BulkRow;
  /** When it goes on; null: when nothing else says so. */
  readonly next: Date | null;
  readonly hints: readonly (() => void)[];
}

const NONE: BulkCounts = { total: 0, pending: 0, running: 0, succeeded: 0, failed: 0, skipped: 0, cancelled: 0 };

/** The counts after items went from one state to others. */
const moved = (counts: BulkCounts, from: BulkItemStatus, to: readonly ItemResult[]): BulkCounts => {
  const next = { ...NONE, ...counts };
  for (const { status } of to) {
    next[from] -= 1;
    next[status] += 1;
  }
  return next;
};

/** Skipped and cancelled items count for neither side. */
const endedOf = ({ succeeded, failed, total, skipped }: BulkCounts) => ({ succeeded, failures: failed, size: total - skipped });

const commandsOf = (items: readonly { readonly commandId: string | null }[]): readonly string[] =>
  items.flatMap(({ commandId }) => (commandId === null ? [] : [commandId]));

const withRow = (work: Work, change: Partial<BulkRow>): Work => ({ ...work, row: { ...work.row, ...change } });

/** The end of an item whose command has ended. */
const endOf = (state: { readonly status: string; readonly failureCode: string | null } | undefined): ItemResult => {
  if (state === undefined) return { status: "failed", code: "COMMAND_NOT_FOUND" };
  if (state.status === "succeeded" || state.status === "delivered") return { status: "succeeded" };
  if (state.status === "canceled") return { status: "cancelled", code: "COMMAND_CANCELED" };
  return { status: "failed", code: state.failureCode ?? `COMMAND_${state.status.toUpperCase()}` };
};

export const createStepper = (deps: StepperDeps) => {
  const claim = async (tx: Tx, { scope, recordId }: StepFacts): Promise<Work | null> => {
    const row = await lockBulk(tx, scope, recordId);
    if (row === null || row.completedAt !== null) return null;
    const entry = REGISTRY[row.operation] as BulkEntry; // as: each entry takes its own parameters
    const needs = { permissions: ["bulk:write", entry.permission] as const, unlimitedOnly: entry.unlimitedOnly };
    return { row, entry, before: row, scope: await deps.access({ ...row, workId: row.operationId }, needs), next: null, hints: [] };
  };

  const pull = async (tx: Tx, work: Work, { scope }: StepFacts): Promise<Work> => {
    const { operationId, counts, maxParallel } = work.row;
    if (counts.running === 0) return work;
    const running = await runningItems(tx, scope, operationId, Math.max(maxParallel, SLICE));
    const states = await deps.statesOf(tx, scope, commandsOf(running));
    const ended: WrittenItem[] = running.flatMap(({ commandId, ...item }) => {
      const state = states.get(commandId ?? "");
      return state !== undefined && isOpen(state.status) ? [] : [{ ...item, ...endOf(state) }];
    });
    if (ended.length === 0) return work;
    await writeItems(tx, scope, operationId, ended);
    return withRow(work, { counts: moved(counts, "running", ended) });
  };

  const judge = async (tx: Tx, work: Work, { scope, now }: StepFacts): Promise<Work> => {
    const { row } = work;
    const hasBegunAll = row.status === "running" && row.counts.pending === 0;
    if (row.expiresAt <= now && !isFinal(row.status) && !hasBegunAll) return withRow(work, { status: "cancelled", statusReason: "EXPIRED" });
    if (!goesOn(row.status)) return work;
    if (work.scope === null) return withRow(work, { status: "paused", statusReason: "ACCESS_LOST" });
    if (row.failureThreshold !== null && exceeds(endedOf(row.counts), row.failureThreshold))
      return withRow(work, { status: "failed", statusReason: "THRESHOLD" });
    if (row.status !== "pending") return work;
    if (row.startAt !== null && row.startAt > now) return { ...work, next: row.startAt };
    if ((await countOthersRunning(tx, scope, row.operationId)) >= RUNNING_AT_ONCE) return { ...work, next: secondsFromNow(WAIT_SECONDS, now) };
    return withRow(work, { status: "running", startedAt: row.startedAt ?? now });
  };

  const freezeNext = async (tx: Tx, work: Work, scope: TenantScope, now: Date): Promise<Work> => {
    const { row } = work;
    const { added, frozenTo } = await freeze(deps.devices, tx, scope, row);
    const counts = { ...row.counts, total: row.counts.total + added, pending: row.counts.pending + added };
    const next = { ...work, next: now };
    if (frozenTo !== null) return withRow(next, { counts, frozenTo });
    return withRow(next, counts.total === 0 ? { counts, status: "cancelled", statusReason: "BULK_NO_TARGETS" } : { counts, status: "pending" });
  };

  /** How many items may begin now. */
  const maxNext = ({ counts, maxParallel, perMinute }: BulkRow): number =>
    Math.min(SLICE, Math.max(0, maxParallel - counts.running), perMinute === null ? SLICE : Math.max(1, Math.floor(perMinute / MINUTE)));

  const orderNext = async (tx: Tx, work: Work, scope: TenantScope, { now, hasTime }: StepFacts): Promise<Work> => {
    const { row, entry } = work;
    const limit = maxNext(row);
    const due = limit === 0 ? [] : await pendingItems(tx, scope, row.operationId, { n: row.nextItem, limit });
    if (due.length === 0) return work;
    const items = due.map((item) => ({ ...item, attempt: item.attempt + 1 }));
    const hints: (() => void)[] = [...work.hints];
    deps.audit.begin(tx);
    const results = await entry.perform(deps, tx, { row, scope, items, hasTime, afterwards: (hint) => void hints.push(hint) });
    // What waits for room in the queue keeps its place.
    const begun = items.flatMap((item, at) => {
      const result = results[at];
      return result === undefined || result.status === "pending" ? [] : [{ ...item, ...result }];
    });
    await writeItems(tx, scope, row.operationId, begun);
    await deps.audit.append(tx, {
      tenantId: row.tenantId,
      actor: auditActorOf(scope.principal),
      action: entry.singles[0] ?? "bulkOperations.create",
      resource: { type: "bulk-operations", id: row.operationId },
      code: null,
      call: null,
      onlyChanges: true,
    });
    const done = new Set(begun.map(({ n }) => n));
    const nextItem = items.find(({ n }) => !done.has(n))?.n ?? (items.at(-1)?.n ?? 0) + 1;
    const waits = results.some(({ status }) => status === "pending");
    const pace = begun.some(({ status }) => status === "running") ? PACE_SECONDS : 0;
    const seconds = waits ? WAIT_SECONDS : row.perMinute === null ? pace : Math.max(PACE_SECONDS, (begun.length * MINUTE) / row.perMinute);
    return { ...withRow(work, { nextItem, counts: moved(row.counts, "pending", begun) }), hints, next: secondsFromNow(seconds, now) };
  };

  /** Takes back the commands that no device has got: of a paused operation the items are in turn again, otherwise they are cancelled. */
  const withdraw = async (tx: Tx, work: Work, { scope }: StepFacts): Promise<Work> => {
    const { row, entry } = work;
    const { operationId, counts, maxParallel } = row;
    if (entry.withdraws !== true || counts.running === 0) return work;
    const running = await runningItems(tx, scope, operationId, Math.max(maxParallel, SLICE));
    const states = await deps.statesOf(tx, scope, commandsOf(running));
    const orders = running.flatMap(({ commandId, targetId }) =>
      commandId !== null && states.get(commandId)?.status === "queued"
        ? [{ tenantId: scope.tenantId, deviceId: targetId as DeviceId, commandId }] // as: a target's id
        : [],
    );
    const held = await deps.holdUndelivered(tx, orders.slice(0, SLICE));
    const { notify } = await held.cancel("system", "bulk_operation_stopped");
    // One that a node may just be sending ends as its agent answers.
    const after = await deps.statesOf(tx, scope, [...held.commandIds]);
    const end: ItemResult = row.status === "paused" ? { status: "pending" } : { status: "cancelled", code: "WITHDRAWN" };
    const back = running.flatMap(({ commandId, ...item }) => (after.get(commandId ?? "")?.status === "canceled" ? [{ ...item, ...end }] : []));
    await writeItems(tx, scope, operationId, back);
    const nextItem = row.status === "paused" ? back.reduce((least, { n }) => Math.min(least, n), row.nextItem) : row.nextItem;
    return { ...withRow(work, { counts: moved(counts, "running", back), nextItem }), hints: [...work.hints, notify] };
  };

  /** Cancels what has not begun, in an operation that has been stopped. */
  const cancelRest = async (tx: Tx, work: Work, { scope, now }: StepFacts): Promise<Work> => {
    const { operationId, counts, nextItem, statusReason, status } = work.row;
    if (counts.pending === 0) return work;
    const code = statusReason === "EXPIRED" ? "EXPIRED" : status === "failed" ? "THRESHOLD" : "CANCELLED";
    const { count, next } = await cancelPending(tx, scope, operationId, { from: nextItem, code, limit: CANCELLED_AT_ONCE });
    const rest = { ...counts, pending: counts.pending - count, cancelled: counts.cancelled + count };
    return { ...withRow(work, { counts: rest, nextItem: next }), next: now };
  };

  const order = async (tx: Tx, work: Work, step: StepFacts): Promise<Work> => {
    const { status } = work.row;
    if (status === "cancelled" || status === "failed") return cancelRest(tx, await withdraw(tx, work, step), step);
    if (status === "paused") return withdraw(tx, work, step);
    if (work.scope === null) return work;
    if (status === "freezing") return freezeNext(tx, work, work.scope, step.now);
    return status === "running" ? orderNext(tx, work, work.scope, step) : work;
  };

  /** The state of an operation of which nothing is left. */
  const finish = ({ row, ...work }: Work, now: Date): Work => {
    const { status, counts } = row;
    const isOver = counts.pending + counts.running === 0 && (status === "running" || status === "cancelled" || status === "failed");
    if (!isOver) return { row, ...work };
    const ended = status !== "running" ? status : counts.failed + counts.cancelled > 0 ? "completed_with_errors" : "completed";
    return { ...work, row: { ...row, status: ended, completedAt: now } };
  };

  const nextOf = ({ row, next }: Work, now: Date): Date | null => {
    if (row.completedAt !== null) return null;
    if (next !== null) return next < row.expiresAt || row.expiresAt <= now ? next : row.expiresAt;
    if (row.counts.running > 0 || row.status === "running") return secondsFromNow(LOOK_SECONDS, now);
    return row.expiresAt <= now ? secondsFromNow(PACE_SECONDS, now) : row.expiresAt;
  };

  const write = async (tx: Tx, given: Work, { scope, now }: StepFacts) => {
    const work = finish(given, now);
    const { row, before, hints } = work;
    const { operationId, status, statusReason, nextItem, counts, startedAt, completedAt, frozenTo } = row;
    const change = { status, statusReason, nextItem, counts, startedAt, completedAt, frozenTo };
    // A step that waits writes nothing.
    if (row !== before) await updateBulk(tx, scope, operationId, change);
    await deps.emit(tx, eventsOf(scope, before, row));
    return {
      next: nextOf(work, now),
      notify: () => {
        for (const hint of hints) hint();
      },
    };
  };

  const kind: ManyKind<Work> = { kind: BULK, claim, pull, judge, order, write };
  return stepperOf(kind);
};

/** The events of a change of an operation. */
export const eventsOf = (scope: StepFacts["scope"], before: BulkRow, after: BulkRow): Happened<DurableEvent>[] => {
  const { started, completed, failed, paused } = contract.bulkOperations.events;
  const { operationId, operation, name, status, statusReason, counts } = after;
  const told = { operationId, operation, name, total: counts.total };
  const ended = { ...told, status, statusReason, counts };
  return [
    ...(before.startedAt === null && after.startedAt !== null ? [happened(scope, started, operationId, told)] : []),
    ...(before.status !== "paused" && status === "paused" ? [happened(scope, paused, operationId, ended)] : []),
    ...(before.status !== "failed" && status === "failed" ? [happened(scope, failed, operationId, ended)] : []),
    ...(before.completedAt === null && after.completedAt !== null && status !== "failed" ? [happened(scope, completed, operationId, ended)] : []),
  ] as Happened<DurableEvent>[]; // as: a union of events, each with its own payload
};
