// Pulls what has become of the orders, and takes back those that no device has got when the rollout stops.
import type { DeviceId } from "../../../../protocol/index.ts";
import type { Tx } from "../../../core/database.ts";
import type { AppRollouts } from "../../apps/index.ts";
import type { Commands } from "../../commands/index.ts";
import { failuresOf } from "../record.ts";
import { type Decided, decideMember } from "../rules/decide.ts";
import { phaseAt } from "../rules/phases.ts";
import { isFinalRollout } from "../rules/states.ts";
import { findLateResults, findOpen, LATE_RESULT, type OpenMember, saveMembers } from "../store/members.ts";
import type { Draft } from "./draft.ts";

export interface PullDeps {
  readonly apps: () => Pick<AppRollouts, "takeBack">;
  readonly commands: () => Pick<Commands, "holdUndelivered">;
}

const MINUTE_MS = 60_000;
/** The agent of a rollout in its commands and timelines. */
export const templateOf = ({ row }: Pick<Draft, "row">): string | null => (row.settings.subject.kind === "app" ? row.settings.subject.template : null);

/** Nothing is ordered any more, and what is not delivered is withdrawn. */
export const isStopped = ({ row: { status } }: Pick<Draft, "row">): boolean => status === "paused" || status === "rolling_back" || isFinalRollout(status);

const takeBack = async (tx: Tx, draft: Draft, { apps }: PullDeps, members: readonly OpenMember[]): Promise<void> => {
  for (const { app_id, revision, before_revision } of members)
    if (app_id !== null && revision !== null && before_revision !== null)
      await apps().takeBack(tx, draft.scope, { appId: app_id, revision, before: before_revision, by: draft.row.createdBy });
};

export const pull = async (tx: Tx, draft: Draft, deps: PullDeps): Promise<void> => {
  const { row, now, scope } = draft;
  if (row.ordered + row.verifying === 0) return;
  const members = await findOpen(tx, scope, row.rolloutId);
  const decision = {
    now,
    template: templateOf(draft),
    version: row.target.version,
    timeoutMs: row.settings.deviceTimeoutMinutes * MINUTE_MS,
    undelivered: row.status === "rolling_back" || isFinalRollout(row.status) ? "aborted" : "pending",
    isStopped: isStopped(draft),
  } as const;
  const decided = members.flatMap((member) => {
    const change = decideMember(member, decision);
    return change === null ? [] : [{ member, change }];
  });
  await takeBack(
    tx,
    draft,
    deps,
    decided.flatMap(({ member, change }) => (change.takeBack === true ? [member] : [])),
  );
  await saveMembers(
    tx,
    scope,
    row.rolloutId,
    decided.map(({ change: { takeBack: _, ...change } }: { readonly change: Decided }) => change),
  );
  draft.moved(
    decided.flatMap(({ member, change }) =>
      member.status === change.status ? [] : [{ position: member.position, from: member.status, to: change.status, isLate: change.late ?? false }],
    ),
  );
  for (const { member, change } of decided)
    if (change.status === "failed" || change.status === "timed_out") draft.tellFailure(member.device_id, change.code ?? "FAILED", change.message ?? null);
};

/** A device that shows the update after its time has succeeded, as long as its phase lasts. Later its row tells of it, and the figures stay. */
export const pullLateResults = async (tx: Tx, draft: Draft): Promise<void> => {
  const { row, now, scope } = draft;
  if (row.timedOut === 0) return;
  const found = await findLateResults(tx, scope, { rolloutId: row.rolloutId, template: templateOf(draft), version: row.target.version });
  if (found.length === 0) return;
  const bounds = draft.bounds();
  const isCounted = ({ position }: (typeof found)[number]): boolean =>
    !isFinalRollout(row.status) && row.phases[(phaseAt(bounds, position) ?? 0) - 1]?.status !== "passed";
  await saveMembers(
    tx,
    scope,
    row.rolloutId,
    found.map((each) => ({
      deviceId: each.device_id,
      after: { version: each.version, revision: each.revision },
      ...(isCounted(each) ? { status: "succeeded", code: null, message: null, finishedAt: now } : { status: "timed_out", code: LATE_RESULT }),
    })),
  );
  draft.moved(found.filter(isCounted).map(({ position }) => ({ position, from: "timed_out", to: "succeeded" })));
  draft.patch({
    toleratedFailures: Math.min(row.toleratedFailures, failuresOf(draft.row)),
    phases: draft.row.phases.map((phase) => ({ ...phase, tolerated: Math.min(phase.tolerated, phase.failed) })),
  });
};

const WITHDRAWN_AT_ONCE = 200;

/** The next pull finds how they ended. */
export const withdraw = async (tx: Tx, draft: Draft, deps: PullDeps): Promise<void> => {
  const { row, scope } = draft;
  if (row.ordered === 0) return;
  const members = (await findOpen(tx, scope, row.rolloutId)).filter(
    ({ ended_as, sent_at, command_id }) => ended_as === null && sent_at === null && command_id !== null,
  );
  const orders = members
    .slice(0, WITHDRAWN_AT_ONCE)
    .map(({ device_id, command_id }) => ({ tenantId: scope.tenantId, deviceId: device_id as DeviceId, commandId: command_id ?? "" })); // as: a row's id
  const held = await deps.commands().holdUndelivered(tx, orders);
  await takeBack(
    tx,
    draft,
    deps,
    members.filter(({ command_id }) => held.commandIds.has(command_id ?? "")),
  );
  const { notify } = await held.cancel("system", "rollout_stopped");
  draft.notifies.push(notify);
};
