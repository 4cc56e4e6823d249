// Replays programs against the real feature on real SQL and compares every answer and every row with the model, many devices at a time.
// The test sets the database's clock: its own `now` comes before PostgreSQL's in the search path, so the statements run unchanged.
import { isDeepStrictEqual } from "node:util";
import { AppError } from "../../../../server/core/errors.ts";
import { openMemoryBus } from "../../../../server/platform/cluster/bus-memory.ts";
import type { Db } from "../../../../server/platform/database/db.ts";
import { createTestDatabase, withClient } from "../../../kit/stores/database.ts";
import { addDevice, as, asOperator, createCommandsFeature, type DeviceRef, openTestDb, runJob } from "../kit.ts";
import { emptyQueue, play, reap, WORK_TIME_SECONDS } from "./model.ts";
import type { Act, Flushed, Op, Page, TimeStep } from "./programs.ts";
import type { Queue } from "./queue.ts";
import { firstBreach, firstDifference, type Row, readConnected, readRows } from "./rows.ts";

const START = Date.parse("2026-03-01T00:00:00.000Z");
const SAFE_TYPE = "echo";
const UNSAFE_TYPE = "shell";

/** Changes statements on their way to the database, so that a control can see the test fail. */
export type Sabotage = (sql: string) => string;

export interface Replay {
  /** Null when the queue and the model agree to the end, otherwise the first disagreement and its device. */
  run(moments: readonly TimeStep[], programs: readonly (readonly Act[])[]): Promise<Disagreement | null>;
  close(): Promise<void>;
}
export interface Disagreement {
  readonly device: number;
  readonly step: number;
  readonly message: string;
}

interface Player {
  readonly device: DeviceRef;
  queue: Queue;
  rows: readonly Row[];
  /** Of the newest session. */
  node: number;
}

const sabotaged = (db: Db, sabotage: Sabotage): Db => ({
  ...db,
  query: (text, values) => db.query(sabotage(text), values),
  tx: (run) => db.tx((tx) => run({ ...tx, query: (text, values) => tx.query(sabotage(text), values) })),
  sqlTx: (run) => db.sqlTx((tx) => run({ ...tx, query: (text, values) => tx.query(sabotage(text), values) })),
});

const openClockedDb = async (): Promise<Db> => {
  const url = await createTestDatabase();
  await withClient(url, async (client) => {
    await client.query(`create schema clock`);
    await client.query(`do $$ begin execute format('alter database %I set search_path = clock, pg_catalog, public', current_database()); end $$`);
  });
  return openTestDb(url);
};

export const openReplay = async (sabotage: Sabotage = (sql) => sql): Promise<Replay> => {
  const db = await openClockedDb();
  const bus = openMemoryBus();
  // The test writes what was sent after each step, and its clock stands still within one.
  const settings = { batchPaceMs: 0, ackPaceMs: 0, writeSentAfterMs: 3_600_000 };
  let nowMs = START;
  const clock = { now: () => new Date(nowMs), elapsed: () => 0 };
  const features = ["node-a", "node-b"].map((nodeId) => createCommandsFeature(sabotaged(db, sabotage), { nodeId, settings, bus, clock, random: () => 0.5 }));
  await Promise.all(features.map(({ remote }) => remote.open()));
  const featureOf = (index: number) => features[index] ?? features[0] ?? createCommandsFeature(db);
  // Replaced for each step, so that reading the clock costs a constant instead of a look-up per row.
  const setClock = (now: number) => {
    nowMs = now;
    return db.query(
      `create or replace function clock.now() returns timestamptz language sql stable as $$ select '${new Date(now).toISOString()}'::timestamptz $$`,
    );
  };

  const join = async (): Promise<Player> => ({ device: await addDevice(db), queue: emptyQueue(START), rows: [], node: 0 });

  /** Runs one act of one device and, at the same time, the act beside it. */
  const carryOut = async (player: Player, { op, beside }: Act): Promise<readonly (readonly Played[])[]> => {
    const ids = player.queue.commands.map(({ id }) => id);
    const ops = beside === null ? [op] : [op, beside];
    const begin = { idOf: (index: number) => ids[index] ?? "cmd_nobody", epoch: player.queue.epoch, crowded: ops.length > 1 };
    return Promise.all(
      ops.map(async (each) => {
        const page = { ...begin, seen: await actOn(player, each, begin) };
        const rest: readonly Played[] = each.kind === "poll" ? [{ op: { kind: "flushed" }, page }] : [];
        return [{ op: each, page }, ...rest];
      }),
    );
  };

  const actOn = (player: Player, op: Op, page: Omit<Page, "seen">) =>
    perform({ db, feature: featureOf(nodeFor(player, op)), device: player.device }, op, { ...page, now: player.queue.now });
  /** Only the node of the newest session sends over its socket. */
  const nodeFor = (player: Player, op: Op): number => {
    if (op.kind === "hello") player.node = op.node;
    if (op.kind === "claim" || op.kind === "written" || op.kind === "refused") return player.node;
    return "node" in op ? op.node : 0;
  };

  const moveTime = async (players: readonly Player[], { advanceMs }: TimeStep): Promise<void> => {
    for (const { queue } of players) queue.now += advanceMs;
    await setClock(players[0]?.queue.now ?? START);
  };
  const reapAll = async (players: readonly Player[], { reapers }: TimeStep): Promise<void> => {
    await Promise.all(features.slice(0, reapers).map((feature) => runJob(feature, "commands.reaper")));
    for (const { queue } of players) reap(queue);
  };
  /** The first device that `check` complains about. */
  const inspect = async (players: readonly Player[], isLast: boolean, check: (player: Player, rows: readonly Row[], index: number) => string | null) => {
    const all = await readRows(db, isLast);
    for (const [device, player] of players.entries()) {
      const rows = all.get(player.device.deviceId) ?? [];
      const message = check(player, rows, device) ?? firstBreach(player.rows, rows);
      if (message !== null) return { device, message };
      player.rows = rows;
    }
    return null;
  };

  const step = async (
    players: readonly Player[],
    acts: readonly (Act | undefined)[],
    { moment, isLast }: { readonly moment: TimeStep; readonly isLast: boolean },
  ) => {
    await moveTime(players, moment);
    const played = await Promise.all(players.map((player, index) => (acts[index] === undefined ? [] : carryOut(player, acts[index]))));
    await Promise.all(features.map((feature) => feature.writeSent()));
    const connected = await readConnected(db);
    const wrong = await inspect(players, isLast && moment.reapers === 0, (player, rows, index) =>
      explain(player, { rows, connected: connected.has(player.device.deviceId) }, played[index] ?? []),
    );
    if (wrong !== null || moment.reapers === 0) return wrong;
    await reapAll(players, moment);
    return inspect(players, isLast, ({ queue }, rows) => firstDifference(queue, rows));
  };

  return {
    run: async (moments, programs) => {
      await db.query(`truncate commands, command_queue, device_presence, devices, outbox_events cascade`);
      await setClock(START);
      const players = await Promise.all(programs.map(join));
      for (const [at, moment] of moments.entries()) {
        const wrong = await step(
          players,
          programs.map((acts) => acts[at]),
          { moment, isLast: at === moments.length - 1 },
        );
        if (wrong !== null) return { ...wrong, step: at };
      }
      return null;
    },
    close: () => db.close(),
  };
};

interface Played {
  readonly op: Op | Flushed;
  readonly page: Page;
}

/** Acts that ran at once must look as if they ran one after the other, in some order. The model continues with the first order that fits. */
const explain = (
  player: Player,
  { rows, connected }: { readonly rows: readonly Row[]; readonly connected: boolean },
  [one = [], other = []]: readonly (readonly Played[])[],
): string | null => {
  let complaint: string | null = null;
  for (const order of ordersOf(one, other)
    .flatMap((each) => overtakenOrNot(each, rows))
    .flatMap(unsettledOrNot)) {
    const queue = structuredClone(player.queue);
    const wrong = follow(queue, order) ?? firstDifference(queue, rows) ?? (queue.connected === connected ? null : `connected is ${connected}`);
    if (wrong === null) {
      player.queue = queue;
      return null;
    }
    complaint = complaint === null ? wrong : `${complaint}; in the other order: ${wrong}`;
  }
  return complaint;
};

/** Every interleaving of two sequences. */
const ordersOf = (one: readonly Played[], other: readonly Played[]): readonly (readonly Played[])[] => {
  const [[first, ...rest], [second, ...others]] = [one, other];
  if (first === undefined) return [other];
  if (second === undefined) return [one];
  return [...ordersOf(rest, other).map((order) => [first, ...order]), ...ordersOf(one, others).map((order) => [second, ...order])];
};

/** A hello may come between the question to the old session's node and a cancellation. */
const unsettledOrNot = (order: readonly Played[]): readonly (readonly Played[])[] =>
  order.some(({ op }) => op.kind === "hello") && order.some(({ op }) => op.kind === "cancel" || op.kind === "purge")
    ? [order, order.map(({ op, page }) => ({ op, page: { ...page, unsettled: true } }))]
    : [order];

/** What a session sent is written a moment later, and not at all if another act changed the command meanwhile: then it is as if it had not been sent. */
const overtakenOrNot = (order: readonly Played[], rows: readonly Row[]): readonly (readonly Played[])[] => {
  if (!order.some(({ op, page }) => op.kind === "claim" && page.crowded)) return [order];
  const written = new Set(rows.filter(({ status, channel }) => status === "sent" && channel === "ws").map(({ command_id }) => command_id));
  const variants: readonly ReadonlySet<string>[] = [written, new Set()];
  return [order, ...variants.map((kept) => order.map(({ op, page }) => ({ op, page: op.kind === "claim" && page.crowded ? { ...page, kept } : page })))];
};

const follow = (queue: Queue, played: readonly Played[]): string | null => {
  for (const { op, page } of played) {
    const answer = play(queue, op, page);
    if (!isDeepStrictEqual(answer, page.seen)) return `${op.kind} answered ${JSON.stringify(page.seen)}, the model says ${JSON.stringify(answer)}`;
  }
  return null;
};

interface Target {
  readonly db: Db;
  readonly feature: ReturnType<typeof createCommandsFeature>;
  readonly device: DeviceRef;
}
type Begin = Omit<Page, "seen"> & { readonly now: number };

const perform = async ({ db, feature, device }: Target, op: Op, { idOf, epoch: current, now }: Begin): Promise<unknown> => {
  const operator = asOperator(feature, device, as("admin"));
  const epoch = "stale" in op ? current - (op.stale ? 1 : 0) : 0;
  switch (op.kind) {
    case "create":
      return (await operator.queue(toInput(op, now))).commandId;
    case "claim": {
      const { commands, left } = await feature.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight: op.maxInFlight });
      return { taken: commands.map(({ command, delivery }) => [command.commandId, delivery.attempt]), left };
    }
    case "poll":
      return (await operator.poll(op.limit)).map(({ commandId, delivery }) => [commandId, delivery.attempt]);
    case "written":
      await feature.delivery.delivered(device, epoch, [idOf(op.of)]);
      return null;
    case "refused":
      await feature.delivery.refused(device, epoch, [idOf(op.of)]);
      return null;
    case "ack": {
      const progress = op.progress ? { progress: { pct: 50 } } : {};
      const { status, result } = await feature.delivery.ack(device, { commandId: idOf(op.of), status: op.word, ...progress });
      return { status, result };
    }
    case "cancel":
      return operator.cancel(idOf(op.of), { force: op.force }).then(({ status }) => status, codeOf);
    case "purge":
      return (await operator.run("purge", { deviceId: device.deviceId })).result.canceled;
    case "reset":
      return db.sqlTx(async (tx) => (await feature.resetDevice(tx, device, "paired anew")).canceled);
    case "hello":
      return hello({ db, feature, device }, op, idOf);
    case "crash":
      await db.query(`update device_presence set connectivity = 'none' where device_id = $1`, [device.deviceId]);
      return null;
  }
};

const codeOf = (error: unknown): string => {
  if (error instanceof AppError) return error.code;
  throw error;
};

const toInput = (op: Extract<Op, { kind: "create" }>, now: number): Record<string, unknown> => ({
  ...(op.safe ? { type: SAFE_TYPE } : { type: UNSAFE_TYPE, payload: { command: "true" } }),
  ...(op.lane === null ? {} : { lane: op.lane }),
  ...(op.delaySeconds === 0 ? {} : { notBefore: new Date(now + op.delaySeconds * 1_000).toISOString() }),
  expiresAt: op.lifeSeconds === null ? null : new Date(now + (op.delaySeconds + op.lifeSeconds) * 1_000).toISOString(),
  priority: op.priority,
  requiresAck: op.asksAck,
  maxAttempts: op.maxAttempts,
  executionTimeoutSeconds: WORK_TIME_SECONDS,
});

/** The transaction of a hello: it raises the epoch, then settles the commands of older sessions. */
const hello = ({ db, feature, device }: Target, op: Extract<Op, { kind: "hello" }>, idOf: (index: number) => string) =>
  db.sqlTx(async (tx) => {
    const [row] = await tx.query<{ epoch: number }>(
      `insert into device_presence as p (device_id, tenant_id, epoch, connectivity, node_id) values ($1, $2, 1, 'realtime', $3)
       on conflict (device_id) do update set epoch = p.epoch + 1, connectivity = 'realtime', node_id = $3 returning epoch`,
      [device.deviceId, device.tenantId, op.node === 0 ? "node-a" : "node-b"],
    );
    const epoch = row?.epoch ?? 0;
    const inFlight = op.lists.map(({ of, as }) => ({ commandId: idOf(of), status: as }));
    const [settled] = await feature.delivery.settle(tx, [
      { ...device, epoch, inFlight, journal: op.journal, listsAll: op.listsAll, cancels: op.cancels, handoff: op.handoff },
    ]);
    return { epoch, reconcile: settled?.reconcile.map(({ commandId, action }) => [commandId, action]), queued: settled?.queuedCount };
  });
