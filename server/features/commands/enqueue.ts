// Queues commands that other features order inside their own transactions: the command exists if and only if its cause does.

import { AppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { CommandOrder, Enqueue, EnqueueEach, OneOfManyOrders, OrderResult } from "../../core/ports/delivery.ts";
import { fingerprint } from "../../core/rows/fingerprint.ts";
import { isDeeperThan, jsonBytes } from "../../core/rows/json-bounds.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Admission, NewCommand } from "./admission.ts";
import { anyCommandType, type CommandType, laneOf } from "./command-types.ts";
import { createQueueQuota, type QueueQuota } from "./queue-quota.ts";
import type { AfterCommit } from "./sending/after-commit.ts";
import type { CommandSettings } from "./settings.ts";
import { admitCommands, insertCommands } from "./store/create.ts";

export interface EnqueueDeps {
  readonly afterCommit: Pick<AfterCommit, "created">;
  readonly nodeId: string;
  readonly quota: QueueQuota;
  readonly settings: CommandSettings;
}

type Refused = Extract<Admission, { kind: "refused" }>;
const isRefused = (admission: Admission): admission is Refused => admission.kind === "refused";

const ORDINARY = { requiresAck: true, priority: 5, maxAttempts: 10, bounded: true } as const;
// A full queue must not keep a secret rotation from its device, and the gateway does not give up its own commands early.
const OWN = { requiresAck: true, priority: 9, maxAttempts: 100, bounded: false } as const;

export const createEnqueue =
  ({ afterCommit, nodeId, quota, settings }: EnqueueDeps): Enqueue =>
  async (tx, scope, orders) => {
    const admissions = await admitCommands(
      tx,
      orders.map((order) => toNewCommand(scope, order, settings)),
      { limits: settings, quota, nodeId },
    );
    const refused = admissions.find(isRefused);
    // Thrown before anything is written: a caller that catches this and commits all the same has ordered nothing.
    if (refused !== undefined) throw new AppError(refused.code, refused.options);
    await insertCommands(tx, admissions);
    const made = admissions.flatMap((admission) => (admission.kind === "created" ? [admission] : []));
    return {
      commandIds: admissions.flatMap((admission) => (isRefused(admission) ? [] : [admission.row.commandId])),
      notify: () => afterCommit.created(made),
    };
  };

/** Orders for many devices leave the rest of a tenant's queue to single commands. */
const SHARE_OF_MANY = 0.8;

export const createEnqueueEach = ({ afterCommit, nodeId, settings }: Omit<EnqueueDeps, "quota">): EnqueueEach => {
  const { maxOpenPerTenant } = settings;
  const limits = { ...settings, maxOpenPerTenant: maxOpenPerTenant === null ? null : Math.floor(maxOpenPerTenant * SHARE_OF_MANY) };
  const facts = { limits, quota: createQueueQuota(limits.maxOpenPerTenant), nodeId };
  return async (tx, scope, orders) => {
    const prepared = orders.map((order) => attempt(() => toNewCommand(scope, order, settings)));
    const items = prepared.flatMap((each) => (each instanceof AppError ? [] : [each]));
    const admissions = items.length === 0 ? [] : await admitCommands(tx, items, facts);
    await insertCommands(tx, admissions);
    const rest = admissions[Symbol.iterator]();
    return {
      results: prepared.map((each) => (each instanceof AppError ? refusedWith(each) : resultOf(rest.next().value))),
      notify: () => afterCommit.created(admissions.flatMap((admission) => (admission.kind === "created" ? [admission] : []))),
    };
  };
};

const attempt = <T>(make: () => T): T | AppError => {
  try {
    return make();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
};

const refusedWith = ({ code, message, details = {} }: AppError): OrderResult => ({ kind: "refused", code, message, details });

const resultOf = (admission: Admission | undefined): OrderResult => {
  if (admission === undefined) throw new Error("an order has no admission");
  return isRefused(admission) ? refusedWith(new AppError(admission.code, admission.options)) : { kind: "ordered", commandId: admission.row.commandId };
};

// A feature's order carries what people give, within their bounds, and what the feature adds.
const MORE_BYTES = 3;
const DEEPER = 6;

const checked = ({ type, payload = {} }: CommandOrder, known: CommandType, { maxPayloadBytes, maxPayloadDepth }: CommandSettings): NewCommand["payload"] => {
  const [maxBytes, maxDepth] = [maxPayloadBytes * MORE_BYTES, maxPayloadDepth + DEEPER];
  const fits = !isDeeperThan(payload, maxDepth) && jsonBytes(payload) <= maxBytes && known.payload.safeParse(payload).success;
  if (!fits) throw new AppError("COMMAND_PAYLOAD_INVALID", { details: { type, maxBytes, maxDepth } });
  return payload;
};

const toNewCommand = (scope: SystemScope, order: OneOfManyOrders, settings: CommandSettings): NewCommand => {
  const { deviceId, type, key, orderedBy, terms = {} } = order;
  const known = anyCommandType(type);
  if (known === null) throw new AppError("COMMAND_TYPE_UNKNOWN", { details: { type } });
  const payload = checked(order, known, settings);
  const commandId = newId("cmd");
  const { requiresAck, priority, maxAttempts, bounded } = { ...(known.isOwn ? OWN : ORDINARY), ...terms };
  return {
    requiresAck,
    priority,
    maxAttempts,
    bounded,
    scope,
    commandId,
    deviceId,
    type,
    payload,
    lane: terms.lane ?? (known.isOwn ? type : laneOf(commandId, payload, known)),
    expiresAt: terms.expiresAt == null ? terms.expiresAt : terms.expiresAt.getTime(),
    ttlSeconds: terms.ttlSeconds ?? order.ttlSeconds ?? known.ttlSeconds,
    notBefore: terms.notBefore?.getTime() ?? null,
    execTimeoutSeconds: order.executionTimeoutSeconds ?? known.executionTimeoutSeconds,
    redeliverSafe: known.redeliverSafe,
    onlyOnline: terms.onlyOnline ?? false,
    // No caller's key begins like this: those name their principal.
    idempotency: { key: `system:${key}`, requestHash: fingerprint({ type, payload }) },
    createdBy: orderedBy,
    traceparent: scope.traceparent ?? null,
  };
};
