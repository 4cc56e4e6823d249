// Orders the next devices in turn: those that have come back first, then the current phase, as far as the ramp, the open orders and the queue allow.
import type { AppSpec, DeviceId } from "../../../../protocol/index.ts";
import type { Tx } from "../../../core/database.ts";
import { isAppError } from "../../../core/errors.ts";
import { eachAlone } from "../../../core/many/each-alone.ts";
import { SLICE } from "../../../core/many/types.ts";
import type { EnqueueEach } from "../../../core/ports/delivery.ts";
import type { AppRollouts } from "../../apps/index.ts";
import { openOf } from "../record.ts";
import { phaseAt } from "../rules/phases.ts";
import { rampOf } from "../rules/ramp.ts";
import type { OfFleet } from "../store/freeze.ts";
import { findWaitingMembers, type RolloutMemberChange, saveMembers, type WaitingMember } from "../store/members.ts";
import type { Draft } from "./draft.ts";
import { templateOf } from "./pull.ts";

export interface OrderDeps {
  readonly enqueueEach: EnqueueEach;
  readonly apps: () => Pick<AppRollouts, "updateMany">;
}

const MINUTE_MS = 60_000;
/** An order that is not delivered by then goes back. */
const DELIVERY_MS = 15 * MINUTE_MS;
const BUSY_AGAIN_MS = MINUTE_MS;

/** In the order of the devices. `waits`: not now, but nothing is wrong with the device. */
type Answer =
  | { readonly kind: "ordered"; readonly commandId: string; readonly revision: number | null }
  | { readonly kind: "refused"; readonly code: string; readonly message: string; readonly isOfTenant: boolean };

export interface OrderTurn {
  readonly fleet: Pick<OfFleet, "fleetId" | "selector"> | null;
  /** When the open window closes. */
  readonly until: Date | "always";
}

const expiryOf = ({ now }: Draft, until: Date | "always"): Date => {
  const latest = now.getTime() + DELIVERY_MS;
  return new Date(until === "always" ? latest : Math.min(latest, until.getTime()));
};

const agents = async (
  tx: Tx,
  draft: Draft,
  { enqueueEach }: OrderDeps,
  asked: { readonly members: readonly WaitingMember[]; readonly expiresAt: Date },
): Promise<readonly Answer[]> => {
  const { row, scope } = draft;
  const { subject } = row.settings;
  const orders = asked.members.map(({ device_id, attempt }) => ({
    deviceId: device_id as DeviceId, // as: a row's id
    type: "agent-update",
    payload: { version: row.target.version, ...(subject.kind === "agent" ? { channel: subject.channel } : {}), rolloutId: row.rolloutId },
    key: `rlt:${row.rolloutId}:${device_id}:${attempt + 1}`,
    orderedBy: row.createdBy,
    terms: { expiresAt: asked.expiresAt },
  }));
  const { results, notify } = await enqueueEach(tx, scope, orders);
  draft.notifies.push(notify);
  return results.map((result) =>
    result.kind === "ordered"
      ? { kind: "ordered", commandId: result.commandId, revision: null }
      : { kind: "refused", code: result.code, message: result.message, isOfTenant: result.details["scope"] === "tenant" },
  );
};

const refusedBy = (error: unknown): Answer =>
  isAppError(error)
    ? { kind: "refused", code: error.code, message: error.message, isOfTenant: error.details?.["scope"] === "tenant" }
    : { kind: "refused", code: "INTERNAL_ERROR", message: "Something went wrong on the server.", isOfTenant: false };

const apps = (
  tx: Tx,
  draft: Draft,
  deps: OrderDeps,
  asked: { readonly members: readonly WaitingMember[]; readonly expiresAt: Date },
): Promise<readonly Answer[]> => {
  const { row, scope } = draft;
  const { configuration } = row.settings;
  const all = async (members: readonly WaitingMember[]): Promise<readonly Answer[]> => {
    const updates = members.map(({ app_id, restore }) => ({
      appId: app_id ?? "",
      to: restore === null ? { version: row.target.version, spec: row.content as AppSpec, configuration } : { restore }, // as: the rollout's own copy
    }));
    const { answers, notify } = await deps.apps().updateMany(tx, scope, updates, { by: row.createdBy, expiresAt: asked.expiresAt });
    draft.notifies.push(notify);
    return answers.map((answer) => (answer.kind === "ordered" ? answer : { ...answer, isOfTenant: answer.details["scope"] === "tenant" }));
  };
  return eachAlone(tx, asked.members, all, (_member, error) => refusedBy(error));
};

/** What a refusal makes of the device. Null: it stays in turn, for the tenant's queue is full. */
const refusal = (member: WaitingMember, draft: Draft, answer: Extract<Answer, { kind: "refused" }>): RolloutMemberChange | null => {
  const { now, row } = draft;
  const { device_id: deviceId, ordered_at: since, attempt } = member;
  const { code, message } = answer;
  if (code === "COMMAND_QUEUE_FULL" && answer.isOfTenant) return null;
  if (code === "DEVICE_NOT_FOUND") return { deviceId, status: "skipped", code: "DEVICE_DELETED", late: false, finishedAt: now };
  if (code === "APP_NOT_FOUND") return { deviceId, status: "skipped", code: "NOT_APPLICABLE", late: false, finishedAt: now };
  const isBusy = code === "INVALID_STATE_TRANSITION" || code === "COMMAND_QUEUE_FULL";
  const known = code === "INVALID_STATE_TRANSITION" ? "BUSY" : code;
  const isOver = since !== null && now.getTime() - since.getTime() > row.settings.deviceTimeoutMinutes * MINUTE_MS;
  // It is asked again each minute, until it has been busy for as long as an update may take.
  if (isBusy && row.settings.retries > 0 && !isOver)
    return { deviceId, status: "pending", late: false, code: known, message, orderedAt: since ?? now, deadlineAt: new Date(now.getTime() + BUSY_AGAIN_MS) };
  return { deviceId, status: "failed", code: known, message, late: false, attempt: attempt + 1, finishedAt: now };
};

/** What a device needs before its turn; null: an order. "wait": it is offline, and the phase waits for it. */
const beforeTurn = (member: WaitingMember, draft: Draft): RolloutMemberChange | null => {
  const { now, row } = draft;
  const { device_id: deviceId } = member;
  const skip = (code: string): RolloutMemberChange => ({ deviceId, status: "skipped", code, late: false, finishedAt: now });
  if (member.is_deleted) return skip("DEVICE_DELETED");
  if (!member.in_fleet) return skip("LEFT_FLEET");
  const isAgent = templateOf(draft) === null;
  if (isAgent && member.agent_version === row.target.version) return skip("ALREADY_THERE");
  if (!isAgent && member.app_status === null) return skip("NOT_APPLICABLE");
  if (member.is_online) return null;
  return row.settings.offlinePolicy === "skip" ? skip("OFFLINE") : { deviceId, status: "pending", late: true, code: "OFFLINE" };
};

const budgets = (draft: Draft) => {
  const { row } = draft;
  const bounds = draft.bounds();
  let left = Math.min(SLICE, row.settings.maxParallel - openOf(row));
  const places = row.phases.map(({ succeeded, failed, tolerated, open }) => rampOf(succeeded, failed - tolerated) - open);
  return {
    take: (position: number): boolean => {
      const at = (phaseAt(bounds, position) ?? 1) - 1;
      if (left <= 0 || (places[at] ?? 0) <= 0) return false;
      left -= 1;
      places[at] = (places[at] ?? 0) - 1;
      return true;
    },
    isEmpty: (): boolean => left <= 0,
  };
};

interface Chosen {
  readonly changes: readonly { readonly member: WaitingMember; readonly change: RolloutMemberChange }[];
  readonly members: readonly WaitingMember[];
  /** There may be more that could be ordered now. */
  readonly more: boolean;
}
const choose = (draft: Draft, waiting: readonly WaitingMember[]): Chosen => {
  const budget = budgets(draft);
  const changes: { readonly member: WaitingMember; readonly change: RolloutMemberChange }[] = [];
  const members: WaitingMember[] = [];
  for (const member of waiting) {
    const change = beforeTurn(member, draft);
    if (change !== null) changes.push({ member, change });
    else if (budget.take(member.position)) members.push(member);
  }
  return { changes, members, more: waiting.length >= SLICE && !budget.isEmpty() };
};

export interface OrderedTurn {
  readonly ordered: number;
  readonly more: boolean;
  /** Nothing is in turn although devices wait: others update them, or they are busy. */
  readonly isElsewhere: boolean;
  readonly isQuotaFull: boolean;
}

export const order = async (tx: Tx, draft: Draft, deps: OrderDeps, { fleet, until }: OrderTurn): Promise<OrderedTurn> => {
  const { row, scope, now } = draft;
  const bound = draft.bounds()[row.phase - 1] ?? 0;
  const waiting = await findWaitingMembers(tx, scope, { rolloutId: row.rolloutId, bound, limit: SLICE, fleet, now });
  const { changes, members, more } = choose(draft, waiting);
  const asked = { members, expiresAt: expiryOf(draft, until) };
  const answers = members.length === 0 ? [] : await (templateOf(draft) === null ? agents(tx, draft, deps, asked) : apps(tx, draft, deps, asked));
  const made = members.flatMap((member, at) => {
    const answer = answers[at];
    if (answer === undefined) return [];
    if (answer.kind === "refused") {
      const change = refusal(member, draft, answer);
      return change === null ? [] : [{ member, change }];
    }
    const { device_id: deviceId, attempt } = member;
    const sent = { commandId: answer.commandId, revision: answer.revision, attempt: attempt + 1, orderedAt: now, deadlineAt: null, code: null, message: null };
    return [{ member, change: { deviceId, status: "ordered", late: false, ...sent } as const }];
  });
  const all = [...changes, ...made];
  await saveMembers(
    tx,
    scope,
    row.rolloutId,
    all.map(({ change }) => change),
  );
  draft.moved(
    all.map(({ member, change }) => ({ position: member.position, from: "pending", to: change.status, wasLate: member.late, isLate: change.late ?? false })),
  );
  for (const { member, change } of all) if (change.status === "failed") draft.tellFailure(member.device_id, change.code ?? "FAILED", change.message ?? null);
  const ordered = all.filter(({ change }) => change.status === "ordered").length;
  const isQuotaFull = answers.some((answer) => answer.kind === "refused" && answer.isOfTenant);
  return { ordered, more: more || changes.length > 0, isElsewhere: waiting.length === 0 && (draft.current()?.waiting ?? 0) > 0, isQuotaFull };
};
