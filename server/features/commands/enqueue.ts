// Queues commands that other features order inside their own transactions: the command exists if and only if its cause does.

import { AppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { CommandOrder, Enqueue } from "../../core/ports/delivery.ts";
import { fingerprint } from "../../core/rows/fingerprint.ts";
import { isDeeperThan, jsonBytes } from "../../core/rows/json-bounds.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Admission, NewCommand } from "./admission.ts";
import { type CommandType, commandType, declaredType, laneOf, systemType } from "./command-types.ts";
import type { QueueQuota } from "./queue-quota.ts";
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

const ORDINARY = { priority: 5, maxAttempts: 10, bounded: true } as const;
// A full queue must not keep a secret rotation from its device, and the gateway does not give up its own commands early.
const OWN = { priority: 9, maxAttempts: 100, bounded: false } as const;

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

// A feature's order carries what people give, within their bounds, and what the feature adds.
const MORE_BYTES = 3;
const DEEPER = 6;

const checked = ({ type, payload = {} }: CommandOrder, known: CommandType, { maxPayloadBytes, maxPayloadDepth }: CommandSettings): NewCommand["payload"] => {
  const [maxBytes, maxDepth] = [maxPayloadBytes * MORE_BYTES, maxPayloadDepth + DEEPER];
  const fits = !isDeeperThan(payload, maxDepth) && jsonBytes(payload) <= maxBytes && known.payload.safeParse(payload).success;
  if (!fits) throw new AppError("COMMAND_PAYLOAD_INVALID", { details: { type, maxBytes, maxDepth } });
  return payload;
};

const toNewCommand = (scope: SystemScope, order: CommandOrder, settings: CommandSettings): NewCommand => {
  const { deviceId, type, key, orderedBy } = order;
  const own = systemType(type);
  const known = own ?? declaredType(type) ?? commandType(type);
  if (known === null) throw new AppError("COMMAND_TYPE_UNKNOWN", { details: { type } });
  const payload = checked(order, known, settings);
  const commandId = newId("cmd");
  return {
    ...(own === null ? ORDINARY : OWN),
    scope,
    commandId,
    deviceId,
    type,
    payload,
    requiresAck: true,
    lane: own === null ? laneOf(commandId, payload, known) : type,
    expiresAt: undefined,
    ttlSeconds: known.ttlSeconds,
    notBefore: null,
    execTimeoutSeconds: order.executionTimeoutSeconds ?? known.executionTimeoutSeconds,
    redeliverSafe: known.redeliverSafe,
    onlyOnline: false,
    // No caller's key begins like this: those name their principal.
    idempotency: { key: `system:${key}`, requestHash: fingerprint({ type, payload }) },
    createdBy: orderedBy,
    traceparent: scope.traceparent ?? null,
  };
};
