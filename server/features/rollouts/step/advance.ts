// Judges a rollout that is under way and moves it on: the threshold, its phases with soak and approval, its windows, and its end.

import type { RolloutReason } from "../../../../protocol/index.ts";
import type { Tx } from "../../../core/database.ts";
import { exceeds } from "../../../core/many/threshold.ts";
import { failuresOf, openOf, type RolloutRow } from "../record.ts";
import { boundsOf, type StoredPhase } from "../rules/phases.ts";
import { isOutOfReach } from "../rules/ramp.ts";
import { nextOpening, openUntil } from "../rules/windows.ts";
import { endPending, findBroken, saveMembers } from "../store/members.ts";
import type { Draft } from "./draft.ts";
import { templateOf } from "./pull.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const SKIPPED_AT_ONCE = 5_000;

/** Makes the rollout that undoes this one. */
export type RollBack = (tx: Tx, draft: Draft) => Promise<void>;

const later = ({ now }: Draft, ms: number): Date => new Date(now.getTime() + ms);

/** Stops as the settings say. */
const stop = async (tx: Tx, draft: Draft, reason: RolloutReason, rollBack: RollBack): Promise<void> => {
  const happening = { by: "system", reason };
  const { onFailure } = draft.row.settings;
  const phase = draft.current();
  if (reason === "PHASE_FAILED" && phase !== undefined) draft.patchPhase(phase.phase, { status: "failed" });
  draft.wait(null);
  if (draft.row.status === "waiting_window") draft.to("running", { event: "window_left", by: "system" });
  if (onFailure === "pause") {
    draft.to("paused", { event: "paused", ...happening }, { statusReason: reason, reasonText: null });
    draft.tellStop("paused");
  } else if (onFailure === "abort") {
    draft.to("failed", { event: "failed", ...happening }, { statusReason: reason, reasonText: null, completedAt: draft.now });
    draft.tellStop("failed");
  } else {
    draft.to("rolling_back", { event: "rolling_back", ...happening }, { statusReason: reason, reasonText: null });
    await rollBack(tx, draft);
  }
};

/** Failures that nobody has accepted. A rollback only reports: there is nothing to go back to. */
const problemOf = ({ row }: Draft, phase: StoredPhase | undefined): RolloutReason | null => {
  if (row.rollbackOf !== null) return null;
  const failures = failuresOf(row) - row.toleratedFailures;
  const ended = { succeeded: row.succeeded, failures, size: row.total - row.skipped - row.aborted - row.toleratedFailures };
  if (exceeds(ended, row.settings.failureThreshold)) return "THRESHOLD_EXCEEDED";
  if (phase === undefined || phase.status === "passed") return null;
  const failed = phase.failed - phase.tolerated;
  return isOutOfReach(failed, phase.size - phase.left - phase.tolerated, phase.minSuccessPercent) ? "PHASE_FAILED" : null;
};

/** Looks whether what had succeeded still does. */
const findLost = async (tx: Tx, draft: Draft, phase: StoredPhase): Promise<void> => {
  const { row, now, scope } = draft;
  const to = boundsOf(row.phases)[phase.phase - 1] ?? 0;
  const broken = await findBroken(tx, scope, {
    rolloutId: row.rolloutId,
    from: to - phase.size + 1,
    to,
    template: templateOf(draft),
    version: row.target.version,
    now,
  });
  await saveMembers(
    tx,
    scope,
    row.rolloutId,
    broken.map(({ device_id: deviceId, code, message, lines }) => ({ deviceId, status: "failed", code, message, lines, finishedAt: now })),
  );
  draft.moved(broken.map(({ position }) => ({ position, from: "succeeded", to: "failed" })));
  for (const { device_id, code, message } of broken) draft.tellFailure(device_id, code, message);
};

const beginPhase = (draft: Draft, at: number): void => {
  const phase = draft.row.phases[at - 1];
  if (phase === undefined) return;
  draft.patch({ phase: at });
  if (phase.size === 0) {
    draft.patchPhase(at, { status: "passed", finishedAt: draft.now.toISOString() });
    beginPhase(draft, at + 1);
    return;
  }
  if (phase.requireApproval && !draft.row.phaseApproved) {
    draft.patchPhase(at, { status: "awaiting_approval" });
    draft.to("awaiting_approval", { event: "awaiting_approval", by: "system" });
    draft.wait("approval");
    draft.tell("awaitingApproval");
    return;
  }
  draft.patch({ phaseApproved: false });
  draft.patchPhase(at, { status: "running", startedAt: draft.now.toISOString() });
};

const pass = (draft: Draft, phase: StoredPhase): void => {
  draft.patchPhase(phase.phase, { status: "passed", finishedAt: draft.now.toISOString(), soakUntil: phase.soakUntil });
  draft.note({ event: "phase_passed", by: "system" });
  draft.tell("phaseCompleted");
  beginPhase(draft, phase.phase + 1);
};

/** Whether the phase waits for its offline devices. */
const waitsForLate = ({ row, now }: Draft, phase: StoredPhase): boolean =>
  row.settings.offlinePolicy === "wait" &&
  phase.late > 0 &&
  now.getTime() < Date.parse(phase.startedAt ?? now.toISOString()) + row.settings.offlineWaitHours * HOUR_MS;

/** Goes on to the soak and past it. True if something has moved, so that it is judged again. */
const stepPhase = async (tx: Tx, draft: Draft, phase: StoredPhase): Promise<boolean> => {
  const { now } = draft;
  if (phase.status === "pending" || phase.status === "awaiting_approval") {
    beginPhase(draft, phase.phase);
    return draft.row.status === "running";
  }
  if (phase.waiting + phase.open > 0 || phase.status === "passed" || phase.status === "failed") return false;
  if (waitsForLate(draft, phase)) {
    draft.wait("offline", new Date(Date.parse(phase.startedAt ?? now.toISOString()) + draft.row.settings.offlineWaitHours * HOUR_MS));
    return false;
  }
  if (phase.status === "running" && phase.soakMinutes > 0) {
    draft.patchPhase(phase.phase, { status: "soaking", soakUntil: later(draft, phase.soakMinutes * MINUTE_MS).toISOString() });
    return true;
  }
  await findLost(tx, draft, phase);
  const after = draft.current() ?? phase;
  if (after.failed > phase.failed) return true;
  const until = phase.soakUntil === null ? now : new Date(phase.soakUntil);
  if (until > now) {
    draft.wait("soak", until);
    draft.by(new Date(Math.min(until.getTime(), later(draft, MINUTE_MS).getTime())));
    return false;
  }
  pass(draft, after);
  return draft.row.status === "running";
};

const complete = (draft: Draft): void => {
  const isRollback = draft.row.rollbackOf !== null;
  const didNothing = draft.row.total === draft.row.skipped;
  draft.wait(null);
  draft.to("completed", { event: "completed", by: "system" }, { statusReason: didNothing ? "NOTHING_TO_DO" : null, completedAt: draft.now });
  draft.tell("completed");
  if (isRollback) draft.note({ event: "rollback_done", by: "system" });
};

/** After the last phase: offline devices get their time, and then the rollout ends. */
const finish = async (tx: Tx, draft: Draft): Promise<void> => {
  const { row, now, scope } = draft;
  if (openOf(row) > 0) return draft.wait("devices");
  if (row.late > 0) {
    const since = row.lateSince ?? now;
    const until = new Date(since.getTime() + row.settings.offlineWaitHours * HOUR_MS);
    if (row.lateSince === null) draft.patch({ lateSince: now });
    if (row.settings.offlinePolicy === "later" && until > now) return draft.wait("offline", until);
    const count = await endPending(tx, scope, row.rolloutId, { status: "skipped", code: "OFFLINE", now, limit: SKIPPED_AT_ONCE, onlyLate: true });
    draft.patch({ pending: row.pending - count, late: row.late - count, skipped: row.skipped + count });
    if (draft.row.late > 0) return draft.by(now);
  }
  if (draft.row.pending === 0) complete(draft);
};

const isDone = ({ row }: Draft): boolean => row.phase > 0 && row.phase >= row.phases.length && (row.phases.at(-1)?.status ?? "passed") === "passed";

const toWindow = (draft: Draft): Date | "always" | null => {
  const { row, now } = draft;
  const until = openUntil(row.settings.maintenanceWindows, now);
  if (until !== null) {
    if (row.status === "waiting_window") {
      draft.to("running", { event: "window_opened", by: "system" });
      draft.wait(null);
    }
    return until;
  }
  const opens = nextOpening(row.settings.maintenanceWindows, now);
  if (row.status === "running") draft.to("waiting_window", { event: "window_closed", by: "system" });
  draft.wait("window", opens);
  if (opens !== null) draft.by(opens);
  return null;
};

const isUnderWay = ({ row }: { readonly row: RolloutRow }): boolean => row.status === "running" || row.status === "waiting_window";

/** Until when it may order now; null: it may not. */
export const advanceRollout = async (tx: Tx, draft: Draft, rollBack: RollBack): Promise<Date | "always" | null> => {
  // Each round ends a phase or begins one, so it ends.
  for (let rounds = 0; rounds <= draft.row.phases.length * 3 + 3; rounds += 1) {
    const problem = problemOf(draft, draft.current());
    if (problem !== null) {
      await stop(tx, draft, problem, rollBack);
      return null;
    }
    if (draft.row.phases.length === 0 || isDone(draft)) {
      await finish(tx, draft);
      break;
    }
    const phase = draft.current() ?? draft.row.phases[0];
    // Waiting for a window it neither begins phases nor ends them, except to wait for the window itself.
    if (draft.row.status === "waiting_window" && toWindow(draft) === null) return null;
    if (phase === undefined || !(await stepPhase(tx, draft, phase))) break;
  }
  if (!isUnderWay(draft)) return null;
  const hasTurns = draft.row.pending - draft.row.late > 0 || draft.row.late > 0;
  return hasTurns ? toWindow(draft) : null;
};
