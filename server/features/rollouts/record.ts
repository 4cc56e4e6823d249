// Between rows of rollouts and what others see of them.
import { ROLLOUT_ACTIONS, type Rollout, type RolloutCounts, type RolloutStatus, type RolloutStep, UpdateSubject } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import { wilsonLower } from "../../core/many/threshold.ts";
import type { WorkState } from "../../core/many/types.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import type { StoredPhase } from "./rules/phases.ts";
import { isAllowed, isFinalRollout, PERMISSION_OF, type Situation } from "./rules/states.ts";
import type { RolloutRow } from "./store/rollout-row.ts";

export type { RolloutRow } from "./store/rollout-row.ts";

const APP = "app:";
export const subjectText = (subject: UpdateSubject): string => (subject.kind === "agent" ? "agent" : `${APP}${subject.template}`);

export const countsOf = (row: RolloutRow): RolloutCounts => {
  const { total, pending, ordered, verifying, succeeded, failed, timedOut, skipped, aborted, late } = row;
  return { total, pending, ordered, verifying, succeeded, failed, timedOut, skipped, aborted, late };
};
export const openOf = ({ ordered, verifying }: Pick<RolloutCounts, "ordered" | "verifying">): number => ordered + verifying;
export const failuresOf = ({ failed, timedOut }: Pick<RolloutCounts, "failed" | "timedOut">): number => failed + timedOut;

export const rollbackProblemOf = ({ settings, rollbackOf }: RolloutRow): string | null => {
  if (settings.subject.kind === "agent") return "agents refuse releases that are older than theirs";
  return rollbackOf === null ? null : "it is a rollback itself";
};

export const situationOf = (row: RolloutRow): Situation => ({
  status: row.status,
  phase: row.phase,
  phases: row.phases.length,
  failures: failuresOf(row),
  isRollback: row.rollbackOf !== null,
  rollbackProblem: rollbackProblemOf(row),
  needsApproval: row.settings.approval.required,
  isSettled: isFinalRollout(row.status) && row.pending + openOf(row) === 0,
});

export const isOwn = (row: RolloutRow, scope: SystemScope): boolean => scope.principal != null && actorOf(scope.principal) === row.createdBy;

const actionsOf = (row: RolloutRow, scope: SystemScope): Rollout["actions"] => {
  const permissions = permissionsIn(scope);
  const situation = situationOf(row);
  const isPerson = scope.principal?.kind === "user";
  return ROLLOUT_ACTIONS.filter((action) => {
    if (!permissions.has(PERMISSION_OF[action]) || !isAllowed(action, situation)) return false;
    if (action !== "approve" && action !== "reject") return true;
    return isPerson && !(action === "approve" && row.settings.approval.byOther && isOwn(row, scope));
  });
};

const percent = (share: number): number => Math.round(share * 10_000) / 100;

const shownPhase = ({ tolerated: _tolerated, waiting: _waiting, late: _late, left: _left, ...phase }: StoredPhase): Rollout["phases"][number] => phase;

/** What a limited caller sees of the figures; null for all others. */
export interface SeenCounts {
  readonly counts: RolloutCounts;
  readonly phases: readonly Pick<StoredPhase, "size" | "succeeded" | "failed" | "open">[];
}

export const toRollout = (row: RolloutRow, scope: SystemScope, work: WorkState | undefined, seen: SeenCounts | null = null): Rollout => {
  const counts = seen?.counts ?? countsOf(row);
  const failures = failuresOf(counts);
  const finished = counts.succeeded + failures;
  return {
    rolloutId: row.rolloutId,
    tenantId: row.tenantId as Rollout["tenantId"], // as: a row's id
    name: row.name,
    fleetId: row.fleetId,
    updatePolicyId: row.updatePolicyId,
    subject: UpdateSubject.parse(row.settings.subject),
    settings: row.settings,
    target: row.target,
    status: row.status,
    statusReason: row.statusReason,
    reasonText: row.reasonText,
    waitingFor: row.waitingFor,
    until: row.waitUntil?.toISOString() ?? null,
    phase: row.phase,
    phases: row.phases.map((phase, at) => ({ ...shownPhase(phase), ...seen?.phases[at] })),
    counts,
    failurePercent: finished === 0 ? null : percent(failures / finished),
    failurePercentAtLeast: finished === 0 ? null : percent(wilsonLower(failures, finished)),
    actions: actionsOf(row, scope),
    conflicts: row.conflicts,
    startAt: row.startAt?.toISOString() ?? null,
    startedAt: row.startedAt?.toISOString() ?? null,
    completedAt: row.completedAt?.toISOString() ?? null,
    approvedBy: row.approvedBy,
    retryOf: row.retryOf,
    rollbackOf: row.rollbackOf,
    followOf: row.followOf,
    lastError: work?.lastError ?? null,
    createdBy: row.createdBy,
    version: row.version,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
};

/** What happened, bounded: the first and the newest. */
const MAX_STEPS = 200;
export interface Happening {
  readonly event: string;
  readonly by: string;
  readonly reason?: string | null;
}
export const addRolloutStep = (row: RolloutRow, from: RolloutStatus | null, { event, by, reason = null }: Happening, at: Date): RolloutStep[] => {
  const step = { at: at.toISOString(), by, from, to: row.status, event, phase: row.phase, reason, counts: countsOf(row) };
  const [first, , ...newest] = row.steps;
  return row.steps.length < MAX_STEPS || first === undefined ? [...row.steps, step] : [first, ...newest, step];
};

export const subjectOfApp = (template: string): string => `${APP}${template}`;
