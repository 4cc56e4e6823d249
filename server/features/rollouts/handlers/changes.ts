// What people do with a rollout. Each call waits for a step that runs, and none begins before the call has committed.
import { contract, type RolloutAction } from "../../../../protocol/index.ts";
import type { Tx } from "../../../core/database.ts";
import { AppError } from "../../../core/errors.ts";
import { happened } from "../../../core/events.ts";
import type { Handlers, KeyedCall } from "../../../core/feature.ts";
import { actorOf, type TenantScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import type { FindFleet } from "../fleet.ts";
import { addRolloutStep, failuresOf, type Happening, isOwn, openOf, type RolloutRow, rollbackProblemOf, situationOf, toRollout } from "../record.ts";
import { LEADS_TO, move, NEXT, requireAllowed } from "../rules/states.ts";
import type { Starting } from "../starting.ts";
import { createDraft, rolloutEventData } from "../step/draft.ts";
import { retryMembers } from "../store/members.ts";
import { lockRollout, newestOf, saveRollout } from "../store/rollouts.ts";
import { unknownRollout } from "./reads.ts";

export interface RolloutChangesDeps extends Pick<FeatureKit, "clock" | "emit" | "many"> {
  readonly starting: Starting;
  readonly findFleet: FindFleet;
}

type H = Handlers<typeof contract.rollouts>;
type Names = "start" | "pause" | "resume" | "approve" | "reject" | "promote" | "abort" | "retryFailed" | "rollback";
const { paused, resumed, aborted } = contract.rollouts.events;

/** What one call does, with the rollout locked. */
interface Acting {
  readonly tx: Tx;
  readonly scope: TenantScope;
  readonly row: RolloutRow;
  readonly by: string;
  readonly now: Date;
}
type Act = (acting: Acting) => Promise<RolloutRow>;
interface Named {
  readonly rolloutId: string;
}

const ROLLBACK_DAYS = 30;

export const createRolloutChanges = ({ clock, emit, many, starting, findFleet }: RolloutChangesDeps): Pick<H, Names> => {
  const acting = (
    action: RolloutAction,
    { scope, commit }: Pick<KeyedCall<(typeof contract.rollouts.operations)["pause"]>, "scope" | "commit">,
    { rolloutId }: Named,
    act: Act,
  ): ReturnType<H["pause"]> =>
    commit(async (tx, afterwards) => {
      await many.hold(tx, scope, rolloutId);
      const row = await lockRollout(tx, scope, rolloutId);
      if (row === null) throw unknownRollout(rolloutId);
      requireAllowed(action, situationOf(row));
      const done = await act({ tx, scope, row, by: actorOf(scope.principal), now: clock.now() });
      afterwards(many.hint);
      return toRollout(done, scope, undefined);
    });

  /** Writes the change with its step in the history. */
  const write = ({ tx, scope, row, now, by }: Acting, change: Partial<RolloutRow>, happening: Omit<Happening, "by">): Promise<RolloutRow> => {
    const next = { ...row, ...change };
    return saveRollout(tx, scope, { ...next, steps: addRolloutStep(next, row.status, { ...happening, by }, now) });
  };
  const goOn = async (at: Acting, row: RolloutRow): Promise<RolloutRow> => {
    await starting.begin(at.tx, at.scope, { ...row, startAt: row.phase > 0 ? null : row.startAt });
    return row;
  };
  const stopped = (row: RolloutRow) => ({ ...rolloutEventData(row), reason: row.statusReason, text: row.reasonText });

  const rollBackNow = async (at: Acting, inWindow: boolean): Promise<RolloutRow> => {
    const { tx, scope, row, now, by } = at;
    const isEnded = row.completedAt !== null;
    const isOld = row.completedAt !== null && now.getTime() - row.completedAt.getTime() > ROLLBACK_DAYS * 86_400_000;
    const isNewest = (await newestOf(tx, scope, row)) === row.rolloutId;
    if (isEnded && (isOld || !isNewest))
      throw new AppError("ROLLBACK_NOT_POSSIBLE", {
        details: { problem: isOld ? `it ended more than ${ROLLBACK_DAYS} days ago` : "a newer rollout has updated this fleet since" },
      });
    const rolling = await write(
      at,
      { status: move(row.status, "rolling_back"), statusReason: "PERSON", waitingFor: null, waitUntil: null, completedAt: null },
      { event: "rollback" },
    );
    await goOn(at, rolling);
    return starting.rollBack(tx, scope, rolling, { by, inWindow });
  };

  return {
    start: (call, input) =>
      acting("start", call, input, async ({ tx, scope, row }) => {
        const fleet = await findFleet(tx, scope, row.fleetId);
        if (fleet === null) throw new AppError("FLEET_NOT_FOUND", { details: { fleetId: row.fleetId } });
        return starting.start(tx, scope, row, fleet);
      }),
    pause: (call, input) =>
      acting("pause", call, input, async (at) => {
        const { reason = null } = input;
        const change = { status: move(at.row.status, "paused"), statusReason: "PERSON", reasonText: reason, waitingFor: null, waitUntil: null } as const;
        const row = await goOn(at, await write(at, change, { event: "pause", reason }));
        await emit(at.tx, [happened(at.scope, paused, row.rolloutId, stopped(row))]);
        return row;
      }),
    resume: (call, input) =>
      acting("resume", call, input, async (at) => {
        const { row } = at;
        const isStopped = row.statusReason === "THRESHOLD_EXCEEDED" || row.statusReason === "PHASE_FAILED";
        if (isStopped && !input.acceptFailures) {
          const details = { from: row.status, to: LEADS_TO.resume, allowed: [...NEXT[row.status]], reason: "accept_failures" };
          throw new AppError("INVALID_STATE_TRANSITION", { details });
        }
        const tolerated = input.acceptFailures
          ? { toleratedFailures: failuresOf(row), phases: row.phases.map((phase) => ({ ...phase, tolerated: phase.failed })) }
          : {};
        const phases = (tolerated.phases ?? row.phases).map((phase) => (phase.status === "failed" ? { ...phase, status: "running" as const } : phase));
        const change = { ...tolerated, phases, status: move(row.status, "running"), statusReason: null, reasonText: null };
        const saved = await goOn(at, await write(at, change, { event: "resume" }));
        await emit(at.tx, [happened(at.scope, resumed, saved.rolloutId, rolloutEventData(saved))]);
        return saved;
      }),
    approve: (call, input) =>
      acting("approve", call, input, async (at) => {
        const { row, scope, by } = at;
        if (row.settings.approval.byOther && isOwn(row, scope)) throw new AppError("APPROVAL_REQUIRED", { details: { reason: "own_rollout" } });
        const status = move(row.status, row.phase > 0 ? "running" : "scheduled");
        const change = { status, approvedBy: by, phaseApproved: true, waitingFor: row.phase > 0 ? null : ("start" as const) };
        return goOn(
          at,
          await write(at, row.phase > 0 ? change : { ...change, phaseApproved: row.phaseApproved }, { event: "approve", reason: input.note ?? null }),
        );
      }),
    reject: (call, input) => acting("reject", call, input, (at) => abort(at, input.reason, "REJECTED")),
    abort: (call, input) => acting("abort", call, input, (at) => abort(at, input.reason, "PERSON")),
    promote: (call, input) =>
      acting("promote", call, input, async (at) => {
        const { row, now } = at;
        const ended = { status: "passed" as const, finishedAt: now.toISOString() };
        const phases = row.phases.map((phase) => (phase.phase === row.phase ? { ...phase, ...ended } : phase));
        const change = { phases, phase: row.phase + 1, phaseApproved: false, waitingFor: null, waitUntil: null };
        return goOn(at, await write(at, change, { event: "promote", reason: input.reason }));
      }),
    retryFailed: (call, input) =>
      acting("retryFailed", call, input, async (at) => {
        const { tx, scope, row, by } = at;
        if (row.status !== "paused") return starting.retry(tx, scope, row, by);
        const again = await retryMembers(tx, scope, row.rolloutId, input.codes ?? null);
        const draft = createDraft(row, at);
        draft.moved(again.map(({ position, status }) => ({ position, from: status === "failed" ? "failed" : "timed_out", to: "pending" })));
        const tolerated = Math.min(row.toleratedFailures, failuresOf(draft.row));
        return write({ ...at, row: { ...draft.row, toleratedFailures: tolerated } }, {}, { event: "retry_failed" });
      }),
    rollback: (call, input) =>
      acting("rollback", call, input, async (at) => {
        const problem = rollbackProblemOf(at.row);
        if (problem !== null) throw new AppError("ROLLBACK_NOT_POSSIBLE", { details: { problem } });
        return rollBackNow(at, input.inWindow);
      }),
  };

  async function abort(at: Acting, reason: string, statusReason: "PERSON" | "REJECTED"): Promise<RolloutRow> {
    const isOver = at.row.pending + openOf(at.row) === 0;
    const change = { status: move(at.row.status, "aborted"), statusReason, reasonText: reason, waitingFor: null, waitUntil: null, completedAt: at.now };
    const row = await write(at, change, { event: statusReason === "REJECTED" ? "reject" : "abort", reason });
    if (isOver) await many.end(at.tx, at.scope, row.rolloutId);
    else await goOn(at, row);
    await emit(at.tx, [happened(at.scope, aborted, row.rolloutId, stopped(row))]);
    return row;
  }
};
