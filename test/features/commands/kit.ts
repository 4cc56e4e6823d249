// The commands feature on a real database, a fresh device per test, and a record of everything that the feature tells others.
import { contract, type DeviceId, type Role, type TenantId } from "../../../protocol/index.ts";
import { type Clock, systemClock } from "../../../server/core/clock.ts";
import { AppError } from "../../../server/core/errors.ts";
import type { Happened } from "../../../server/core/events.ts";
import type { Call } from "../../../server/core/feature.ts";
import { newId } from "../../../server/core/ids.ts";
import type { RegisteredOutcome } from "../../../server/core/ports/command-outcomes.ts";
import type { CancelNotice, DeviceNotifier } from "../../../server/core/ports/delivery.ts";
import type { Principal, TenantScope } from "../../../server/core/scope.ts";
import { type CommandSettings, type Commands, createCommands } from "../../../server/features/commands/index.ts";
import { findKnown, findMatching } from "../../../server/features/devices/store/devices.ts";
import type { Bus } from "../../../server/platform/cluster/bus.ts";
import { openMemoryBus } from "../../../server/platform/cluster/bus-memory.ts";
import { createBatch } from "../../../server/platform/database/batch.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { createOutbox } from "../../../server/platform/outbox/outbox.ts";
import { committing, type Database, resultOf, userOf } from "../../kit/gateway/call.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import { createTestDatabase, namedStatements } from "../../kit/stores/database.ts";

/** No session on this node takes a command from memory. */
export const NO_SESSION: Pick<DeviceNotifier, "takesNow" | "pushNow"> = { takesNow: () => false, pushNow: () => undefined };

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

export const openTestDb = async (url?: string, poolSize = 8): Promise<Db> =>
  openDb({ clock: systemClock, url: url ?? (await createTestDatabase()), poolSize, log: silent as never, namedStatements });

export interface Recorded {
  readonly hints: Happened[];
  readonly nudges: string[];
  readonly freed: string[];
  readonly cancels: (CancelNotice & { readonly deviceId: string })[];
  readonly polls: string[];
}

export const createCommandsFeature = (
  db: Db,
  {
    nodeId = "node-a",
    settings = {},
    random = Math.random,
    bus = openMemoryBus(),
    hintsArrive = true,
    outcomes = new Map(),
    onError = () => undefined,
    clock = systemClock,
    session = NO_SESSION,
  }: {
    nodeId?: string;
    settings?: Partial<CommandSettings>;
    random?: () => number;
    bus?: Bus;
    hintsArrive?: boolean;
    outcomes?: ReadonlyMap<string, RegisteredOutcome>;
    onError?: (error: unknown) => void;
    clock?: Clock;
    /** The session of a device on this node, for new commands. */
    session?: Pick<DeviceNotifier, "takesNow" | "pushNow">;
  } = {},
) => {
  const recorded: Recorded = { hints: [], nudges: [], freed: [], cancels: [], polls: [] };
  const outbox = createOutbox({
    db,
    onError: (what, error) => {
      throw new Error(what, { cause: error });
    },
    settings: { wakeAfterMs: 3_600_000 },
  });
  const commands = createCommands({
    db,
    clock,
    createBatch,
    nodeId,
    bus,
    channelOf: (id) => `node:${id}`,
    hintsArrive: () => hintsArrive,
    settings,
    random,
    outcomes,
    onError,
    emit: outbox.emit,
    wakeRelay: outbox.wake,
    hint: (_tenantId, make) => void recorded.hints.push(make()),
    notifier: {
      nudge: (ids) => void recorded.nudges.push(...ids),
      freed: (ids) => void recorded.freed.push(...ids),
      cancel: (deviceId, order) => void recorded.cancels.push({ deviceId, ...order }),
      ...session,
    },
    devices: {
      isVisible: async () => true,
      find: async ({ tenantId }, deviceId) => {
        const [row] = await db.query<{ status: string }>(`select status from devices where tenant_id = $1 and device_id = $2 and deleted_at is null`, [
          tenantId,
          deviceId,
        ]);
        return row === undefined ? null : { deviceId, status: row.status, lastSeenAt: null };
      },
      visible: (scope, deviceIds) => findKnown(db, scope, deviceIds),
      matching: (scope, selector, limit) => findMatching(db, scope, selector, limit),
    },
    presence: { polled: async ({ deviceId }) => void recorded.polls.push(deviceId) },
  });
  return { ...commands, db, outbox, recorded };
};

export interface DeviceRef {
  readonly tenantId: TenantId;
  readonly deviceId: DeviceId;
}

export const addDevice = async (db: Db, given: { tenantId?: TenantId; status?: string } = {}): Promise<DeviceRef> => {
  const device = { tenantId: given.tenantId ?? newId("ten"), deviceId: newId("dev") };
  await insertRow(db, "devices", { device_id: device.deviceId, tenant_id: device.tenantId, status: given.status ?? "online" });
  return device;
};

/** The presence part of a hello: a new epoch on a node. */
export const connectDevice = async (db: Db, { tenantId, deviceId }: DeviceRef, nodeId = "node-a"): Promise<number> => {
  const [row] = await db.query<{ epoch: number }>(
    `insert into device_presence (device_id, tenant_id, epoch, connectivity, node_id, last_seen_at) values ($1, $2, 1, 'realtime', $3, now())
     on conflict (device_id) do update set epoch = device_presence.epoch + 1, connectivity = 'realtime', node_id = $3, last_seen_at = now() returning epoch`,
    [deviceId, tenantId, nodeId],
  );
  return row?.epoch ?? 0;
};

export const disconnectDevice = async (db: Db, { deviceId }: DeviceRef): Promise<void> => {
  await db.query(`update device_presence set connectivity = 'none' where device_id = $1`, [deviceId]);
};

/** Moves a command's times into the past, as if that much time had passed. */
export const age = async (db: Db, commandId: string, seconds: number): Promise<void> => {
  const earlier = (columns: readonly string[]): string => columns.map((column) => `${column} = ${column} - $2 * interval '1 second'`).join(", ");
  const times = ["available_at", "expires_at", "exec_deadline_at", "sent_at"];
  await db.query(`update command_queue set ${earlier([...times, "deadline_at"])} where command_id = $1`, [commandId, seconds]);
  await db.query(`update commands set ${earlier([...times, "finished_at"])} where command_id = $1`, [commandId, seconds]);
};

type Operations = typeof contract.commands.operations;
export type QueueInput = Omit<Parameters<Commands["handlers"]["queue"]>[1], "deviceId" | "payload" | "requiresAck" | "priority" | "maxAttempts" | "ifOffline">;

export const scopeOf = (tenantId: TenantId, principal?: Principal): TenantScope => ({
  tenantId,
  principal: principal ?? userOf("usr_1", null, "operator"),
  requestId: "req_1",
  ip: "127.0.0.1",
  traceparent: null,
  tenant: { tenantId, slug: "t", plan: "free", status: "active", limitOverrides: {}, rateLimitOverrides: {} },
});

export const as = (role: Role): Principal => userOf(`usr_${role}`, null, role);

export const callAs = (scope: TenantScope, idempotencyKey: string | null = null, signal = new AbortController().signal) => {
  const reply: { replayed?: boolean; headers: Record<string, string> } = { headers: {} };
  return {
    scope,
    reply,
    signal,
    idempotencyKey,
    fail: (code: never, details?: AppError["details"], options?: object) => new AppError(code, { details, ...options }),
  } as unknown as Call<never> & { reply: typeof reply };
};

/** Calls the handlers as a user of the device's tenant, through the contract's schemas. */
export const asOperator = (commands: Pick<Commands, "handlers"> & { readonly db: Database }, { tenantId, deviceId }: DeviceRef, principal?: Principal) => {
  const run = async <N extends keyof Operations>(name: N, input: Record<string, unknown>, key: string | null = null) => {
    const call = { ...callAs(scopeOf(tenantId, principal), key), commit: committing(commands.db) };
    const operation = contract.commands.operations[name];
    const handle = commands.handlers[name] as (call: unknown, input: unknown) => Promise<unknown>;
    const result = resultOf(operation, await handle(call, operation.input.parse(input)));
    return { result: result as ReturnType<Operations[N]["output"]["parse"]>, reply: call.reply };
  };
  return {
    run,
    queue: async (input: Record<string, unknown> = {}, key: string | null = null) => (await run("queue", { deviceId, type: "echo", ...input }, key)).result,
    get: async (commandId: string) => (await run("get", { commandId })).result,
    timeline: async (commandId: string) => (await run("timeline", { commandId })).result,
    cancel: async (commandId: string, input: Record<string, unknown> = {}) => (await run("cancel", { commandId, ...input })).result,
    poll: async (limit?: number) => (await run("poll", { deviceId, ...(limit === undefined ? {} : { limit }) })).result.items,
  };
};

export const runJob = async (commands: Commands, name: string): Promise<void> => {
  const job = commands.jobs.find((each) => each.name === name);
  if (job === undefined) throw new Error(`no job ${name}`);
  while ((await job.run(new AbortController().signal)) === true);
};
