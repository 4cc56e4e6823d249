// Queues a command: checks type and payload, writes the row in a batch with others of this moment, and may wait for the command's end.
import type { z } from "zod";
import { type Command, type contract, type DeviceId, isOpen } from "../../../../protocol/index.ts";
import { permissionsIn } from "../../../core/access.ts";
import { AppError } from "../../../core/errors.ts";
import type { Call, Handlers } from "../../../core/feature.ts";
import { newId } from "../../../core/ids.ts";
import { checkIdempotencyKey } from "../../../core/key-form.ts";
import { fingerprintWith } from "../../../core/rows/fingerprint.ts";
import { isDeeperThan, jsonBytes } from "../../../core/rows/json-bounds.ts";
import { actorOf, type TenantScope } from "../../../core/scope.ts";
import type { CreateBatch } from "../../../platform/database/batch.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { NewCommand } from "../admission.ts";
import { batchBounds } from "../batches.ts";
import { type CommandType, commandType, laneOf } from "../command-types.ts";
import type { QueueQuota } from "../queue-quota.ts";
import { toCommand } from "../records.ts";
import type { AfterCommit } from "../sending/after-commit.ts";
import type { CommandSettings } from "../settings.ts";
import { createCommandRows } from "../store/create.ts";
import { findCommands } from "../store/read.ts";
import type { CommandRow } from "../store/rows.ts";
import type { RemoteWaiters } from "../waiting/remote-waiters.ts";
import type { Waiters } from "../waiting/waiters.ts";

type Operation = typeof contract.commands.operations.queue;
type Input = z.output<Operation["input"]>;
type Order = Omit<Input, "deviceId" | "wait">;
type Fail = (code: "COMMAND_TYPE_UNKNOWN" | "COMMAND_PAYLOAD_INVALID", details: Readonly<Record<string, unknown>>) => AppError;
type Ordering = Pick<Call<Operation>, "scope" | "idempotencyKey"> & { readonly fail: Fail };

export interface QueueDeps {
  readonly db: Db;
  readonly afterCommit: Pick<AfterCommit, "created">;
  readonly createBatch: CreateBatch;
  readonly waiters: Pick<Waiters, "take">;
  readonly remoteWaiters: Pick<RemoteWaiters, "ask">;
  readonly nodeId: string;
  readonly quota: QueueQuota;
  readonly settings: CommandSettings;
}

export const createQueueOperation = ({
  db,
  afterCommit,
  createBatch,
  waiters,
  remoteWaiters,
  nodeId,
  quota,
  settings,
}: QueueDeps): Pick<Handlers<typeof contract.commands>, "queue"> => {
  const bounds = batchBounds("writes", settings);
  const create = createBatch((items: readonly NewCommand[]) => createCommandRows(db, items, { limits: settings, quota, nodeId }), bounds);
  const reread = createBatch((rows: readonly CommandRow[]) => findCommands(db, rows), { ...bounds, paceMs: 0 });

  /** Waits for the end of the command, and returns the command as it is when the wait times out. */
  const ended = async (row: CommandRow, seconds: number, { signal, isNew }: { readonly signal: AbortSignal; readonly isNew: boolean }): Promise<CommandRow> => {
    const wait = isOpen(row.status) ? waiters.take({ tenantId: row.tenantId, id: row.commandId }, seconds) : null;
    if (wait === null) return row;
    try {
      // An older one may have ended before this wait began.
      let now: CommandRow | null = isNew ? row : await reread(row);
      while (now !== null && isOpen(now.status) && (await wait.next(signal))) now = wait.ended() ?? (await reread(row));
      // A row from `wait.ended` has no payload.
      return now === null ? row : { ...now, payload: row.payload };
    } finally {
      wait.end();
    }
  };

  return {
    queue: async (call, input): Promise<Command> => {
      const { reply } = call;
      const { deviceId, wait: _wait, ...order } = input;
      const admission = await create(prepareCommands(call, order, settings)(deviceId));

      if (admission.kind === "refused") throw new AppError(admission.code, admission.options);
      const { row } = admission;
      const isNew = admission.kind === "created";
      if (isNew) {
        // Asks first, so the node that holds the device knows of the wait before it gets the command.
        if (input.wait > 0 && admission.heldBy !== null) remoteWaiters.ask(admission.heldBy, row.commandId);
        afterCommit.created([admission]);
      } else reply.replayed = true;
      return toCommand(await ended(row, input.wait, { signal: call.signal, isNew }));
    },
  };
};

/** Throws what `queue` would say of the order, whatever the device. */
export const createCheckOrder =
  ({ settings }: Pick<QueueDeps, "settings">) =>
  (scope: TenantScope, order: Order): void => {
    prepareCommands({ scope, fail: (code, details) => new AppError(code, { details }), idempotencyKey: null }, order, settings);
  };

/** Checks what does not depend on a device, and returns what makes the command of each. */
export const prepareCommands = ({ scope, fail, idempotencyKey }: Ordering, order: Order, settings: CommandSettings): ((deviceId: DeviceId) => NewCommand) => {
  const known = commandType(order.type);
  if (known === null) throw fail("COMMAND_TYPE_UNKNOWN", { type: order.type });
  checkPermission(scope, known);
  checkPayload(order, known, settings, fail);
  checkTimes(order);
  // The pipeline has checked the header, but not a key in the body.
  const key = idempotencyKey ?? (order.idempotencyKey === undefined ? null : checkIdempotencyKey(order.idempotencyKey));
  const { idempotencyKey: _key, ...request } = order;
  const hashOf = fingerprintWith(request);
  return (deviceId) => toNewCommand(scope, order, known, { deviceId, key, hashOf });
};

interface Naming {
  readonly deviceId: DeviceId;
  readonly key: string | null;
  readonly hashOf: (own: object) => Buffer;
}

const checkPermission = (scope: TenantScope, { permission }: CommandType): void => {
  if (permission === null) return;
  if (!permissionsIn(scope).has(permission)) throw new AppError("FORBIDDEN", { details: { requiredPermission: permission } });
};

const checkPayload = ({ type, payload }: Order, known: CommandType, { maxPayloadBytes, maxPayloadDepth }: CommandSettings, fail: Fail): void => {
  const bounds = { type, maxBytes: maxPayloadBytes, maxDepth: maxPayloadDepth };
  if (isDeeperThan(payload, maxPayloadDepth)) throw fail("COMMAND_PAYLOAD_INVALID", { ...bounds, reason: "too_deep" });
  if (jsonBytes(payload) > maxPayloadBytes) throw fail("COMMAND_PAYLOAD_INVALID", { ...bounds, reason: "too_large" });
  const parsed = known.payload.safeParse(payload);
  if (parsed.success) return;
  const issues = parsed.error.issues.slice(0, 50).map(({ path, code, message }) => ({ path: ["payload", ...path.map(String)].join("."), code, message }));
  throw fail("COMMAND_PAYLOAD_INVALID", { type, issues });
};

const checkTimes = ({ ttlSeconds, expiresAt }: Order): void => {
  if (ttlSeconds === undefined || expiresAt === undefined) return;
  throw new AppError("VALIDATION_FAILED", {
    details: { issues: [{ path: "expiresAt", code: "custom", message: "ttlSeconds and expiresAt exclude each other" }] },
  });
};

const toNewCommand = (scope: TenantScope, order: Order, known: CommandType, { deviceId, key, hashOf }: Naming): NewCommand => {
  const commandId = newId("cmd");
  const createdBy = actorOf(scope.principal);
  return {
    scope,
    commandId,
    deviceId,
    type: order.type,
    payload: order.payload,
    requiresAck: order.requiresAck,
    lane: order.lane ?? laneOf(commandId, order.payload, known),
    priority: order.priority,
    expiresAt: typeof order.expiresAt === "string" ? Date.parse(order.expiresAt) : order.expiresAt,
    ttlSeconds: order.ttlSeconds ?? known.ttlSeconds,
    notBefore: order.notBefore === undefined ? null : Date.parse(order.notBefore),
    execTimeoutSeconds: order.executionTimeoutSeconds ?? known.executionTimeoutSeconds,
    maxAttempts: order.maxAttempts,
    redeliverSafe: known.redeliverSafe,
    onlyOnline: order.ifOffline === "fail",
    bounded: true,
    idempotency: key === null ? null : { key: `${createdBy}:${key}`, requestHash: hashOf({ deviceId }) },
    createdBy,
    traceparent: scope.traceparent,
  };
};
