// What follows from an attempt: the delivery's next state, and what others hear of it.
import { contract, type DISABLED_REASONS, type TenantId } from "../../../../protocol/index.ts";
import type { Tx } from "../../../core/database.ts";
import type { Emit } from "../../../core/events.ts";
import { happened } from "../../../core/events.ts";
import type { Result } from "../store/work.ts";
import type { AttemptOutcome } from "./attempt.ts";
import type { Runner, Waiting } from "./endpoint-runner.ts";
import { delayAfter, FAILING_AFTER, isGivenUp } from "./retry-schedule.ts";

type DisabledReason = (typeof DISABLED_REASONS)[number];
export type Consequence =
  | { readonly kind: "recovered" }
  | { readonly kind: "disable"; readonly reason: DisabledReason }
  | { readonly kind: "exhausted"; readonly waiting: Waiting };

export interface SettledAttempt {
  readonly runner: Runner;
  readonly waiting: Waiting;
  readonly result: Result;
  readonly effects: readonly Consequence[];
}

const GONE = 410;

/** Also counts the attempt in the runner's health. */
export const settle = (runner: Runner, waiting: Waiting, { attempt, retryAfter }: AttemptOutcome, now: Date): SettledAttempt => {
  const { webhookId } = runner;
  const { deliveryId, attemptsBefore, trigger } = waiting;
  const settled = (status: Result["status"], delay: number | null, effects: readonly Consequence[]): SettledAttempt => ({
    runner,
    waiting,
    result: { webhookId, deliveryId, attemptsBefore, status, delay, attempt },
    effects,
  });
  const { error, statusCode } = attempt;
  if (error === null) return settled("succeeded", null, runner.noteSuccess(FAILING_AFTER) ? [{ kind: "recovered" }] : []);
  const { failingSince, consecutiveFailures } = runner.noteFailure(now);
  const isOver = statusCode === GONE || isGivenUp(failingSince, consecutiveFailures, now);
  const disable: readonly Consequence[] = isOver ? [{ kind: "disable", reason: statusCode === GONE ? "gone" : "consecutive_failures" }] : [];
  if (error.code === "BLOCKED") return settled("blocked", null, disable);
  const delay = trigger === "manual" || statusCode === GONE ? null : delayAfter(waiting.tries + 1, { code: error.code, statusCode, retryAfter }, now);
  if (delay !== null) return settled("retrying", delay, disable);
  // What happens to webhooks is told once: an event about a webhook's event about a webhook would go round forever.
  const isTold = trigger !== "manual" && !waiting.eventType.startsWith("webhook.");
  return settled("exhausted", null, isTold ? [...disable, { kind: "exhausted", waiting }] : disable);
};

const { recovered, exhausted } = contract.webhooks.events;

export interface EffectDeps {
  readonly emit: Emit;
  readonly disable: (tx: Tx, named: { readonly tenantId: TenantId; readonly webhookId: string }, reason: DisabledReason) => Promise<void>;
}

/** In the transaction that writes the result. */
export const createApply =
  ({ emit, disable }: EffectDeps) =>
  async (tx: Tx, { runner }: SettledAttempt, effect: Consequence): Promise<void> => {
    const { webhookId, state } = runner;
    const scope = { tenantId: runner.tenantId as TenantId }; // as: the column holds nothing else
    const about = { webhookId: webhookId as `wh_${string}`, url: state?.url ?? "" };
    if (effect.kind === "disable") return disable(tx, { ...scope, webhookId }, effect.reason);
    if (effect.kind === "recovered") return emit(tx, [happened(scope, recovered, webhookId, about)]);
    const { deliveryId, eventId, eventType } = effect.waiting;
    await emit(tx, [
      happened(scope, exhausted, webhookId, { ...about, deliveryId: deliveryId as `whd_${string}`, eventId: eventId as `evt_${string}`, eventType }),
    ]);
  };
