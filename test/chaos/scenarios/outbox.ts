// A viewer reads events of long transactions while nodes are killed: it skips none, and a device's events stay in order.
import { randomUUID } from "node:crypto";
import { createRandom, pause, type Random, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { watchFeed } from "../rig/feed.ts";
import { type Rig, withRig } from "../rig/rig.ts";
import { openSql, type SqlConnection, withSql } from "../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const TYPE = "chaos.written";
const LONGEST_OPEN_MS = 800;
const REST_MS = 20_000;
const NAIVE_EVERY_MS = 20;

interface Written {
  readonly id: string;
  readonly device: string;
  readonly n: number;
  readonly committedAtMs: number;
}
interface Seen {
  readonly id: string;
  readonly device: string;
  readonly n: number;
}

const WRITE = "insert into outbox_events (event_id, tenant_id, type, subject_id, data) values ($1, $2, $3, $4, $5)";
const write = (sql: SqlConnection, tenantId: string, { id, device, n }: Seen) =>
  sql.query(WRITE, [id, tenantId, TYPE, device, JSON.stringify({ deviceId: device, n })]);
const idOf = (): string => `evt_rig_${randomUUID()}`;

interface Writing {
  readonly rig: Rig;
  readonly device: string;
  readonly random: Random;
  readonly untilMs: number;
  readonly written: Written[];
}
/** Writes one device's events, each in its own transaction that stays open for a while; meanwhile others take later positions and commit earlier. */
const keepWriting = async ({ rig, device, random, untilMs, written }: Writing): Promise<void> => {
  const sql = await openSql(rig.postgres);
  try {
    for (let n = 1; time.elapsedMs() < untilMs; n += 1) {
      const id = idOf();
      await sql.query("begin");
      await write(sql, rig.credentials.tenantId, { id, device, n });
      await pause(time, random() * LONGEST_OPEN_MS);
      await sql.query("commit");
      written.push({ id, device, n, committedAtMs: time.elapsedMs() });
    }
  } finally {
    await sql.close();
  }
};

/** The naive reader: it continues after the highest position that it has seen. */
const readNaively = async (sql: SqlConnection, isOver: () => boolean): Promise<readonly Seen[]> => {
  const seen: Seen[] = [];
  for (let last = "0"; ; ) {
    const over = isOver();
    const rows = await sql.query<Seen & { position: string }>(
      `select position, event_id as id, subject_id as device, (data->>'n')::int as n from outbox_events where type = $1 and position > $2 order by position`,
      [TYPE, last],
    );
    seen.push(...rows);
    last = rows.at(-1)?.position ?? last;
    if (over) return seen;
    await pause(time, NAIVE_EVERY_MS);
  }
};

/** Kills each node at least once, so that the viewer's is among them. */
const killInTurn = async (rig: Rig, random: Random, untilMs: number): Promise<number> => {
  let kills = 0;
  for (; time.elapsedMs() < untilMs || kills < rig.nodes.length; kills += 1) {
    const node = rig.nodes[kills % rig.nodes.length];
    await pause(time, 500 + random() * 1_000);
    await node?.kill();
    await node?.start();
  }
  return kills;
};

/** A device's events must have rising numbers; an event that repeats after a break or from the other node does no harm. */
const judgeOrder = (written: readonly Written[], seen: readonly Seen[]) => {
  const ids = new Set(seen.map(({ id }) => id));
  const last = new Map<string, number>();
  const told = new Set<string>();
  const count = { reordered: 0, repeated: 0 };
  for (const { id, device, n } of seen) {
    if (told.has(id)) {
      count.repeated += 1;
      continue;
    }
    told.add(id);
    if (n < (last.get(device) ?? 0)) count.reordered += 1;
    last.set(device, Math.max(n, last.get(device) ?? 0));
  }
  return { skipped: written.filter(({ id }) => !ids.has(id)).length, ...count };
};

// Redis joins the nodes: the node that dispatches an event tells the others, whose viewers would otherwise see it only at their next visit.
const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 2, seed, redis: true }, (rig) =>
    withSql(rig.postgres, async (sql) => {
      const random = createRandom(seed);
      const { tenantId } = rig.credentials;
      const start = { id: idOf(), device: "before-all", n: 0 };
      await write(sql, tenantId, start);
      const dispatched = async (): Promise<boolean> =>
        (await sql.query("select 1 from outbox_events e join outbox_dispatches d on e.position = any(d.positions) where e.event_id = $1", [start.id])).length >
        0;
      while (!(await dispatched())) await pause(time, 50);
      const feed = watchFeed({ port: rig.apiProxy.port, credentials: rig.credentials, types: [TYPE], after: start.id });
      const untilMs = time.elapsedMs() + scale.seconds * 1_000;
      const written: Written[] = [];
      const state = { over: false };
      const naive = readNaively(sql, () => state.over);
      try {
        const devices = Array.from({ length: scale.agents > 50 ? 16 : 8 }, (_, index) => `device-${index}`);
        const writing = devices.map((device, index) => keepWriting({ rig, device, random: createRandom(seed + index), untilMs, written }));
        const [kills] = await Promise.all([killInTurn(rig, random, untilMs), ...writing]);
        const arrived = (): ReadonlySet<string> => new Set(feed.events.map(({ id }) => id));
        await until(time, () => written.every(({ id }) => arrived().has(id)), { everyMs: 200, withinMs: REST_MS });
        state.over = true;
        const viewed = feed.events.map(({ id, subjectId, data }): Seen => ({ id, device: subjectId, n: Number(data["n"]) }));
        const naively = judgeOrder(written, await naive);
        const judged = control ? naively : judgeOrder(written, viewed);
        const open = await sql.query("select 1 from outbox_pending where tenant_id = $1", [tenantId]);
        const holes = await sql.query<{ holes: string }>(
          "select max(last_sequence) - sum(cardinality(positions)) as holes from outbox_dispatches where tenant_id = $1",
          [tenantId],
        );
        const latency = createLatency();
        const seenAtMs = new Map([...feed.events].reverse().map((event) => [event.id, event.seenAtMs]));
        for (const { id, committedAtMs } of written) latency.add(Math.max(0, (seenAtMs.get(id) ?? Number.POSITIVE_INFINITY) - committedAtMs));
        return {
          n: written.length,
          faults: kills,
          violations: {
            skipped: judged.skipped,
            reordered: judged.reordered,
            undispatched: open.length,
            "sequence-broken": Math.abs(Number(holes[0]?.holes ?? 1)),
            "viewer-undisturbed": feed.visits < 2 ? 1 : 0,
          },
          latencyMs: latency.percentiles(),
          notes: [
            `n counts committed events of ${devices.length} devices, in transactions open for up to ${LONGEST_OPEN_MS} ms, across ${kills} kills of a node; ms are from the commit to the viewer`,
            `the viewer opened ${feed.visits} streams, ${judgeOrder(written, viewed).repeated} events repeated; a reader by "id > last seen" skipped ${naively.skipped}`,
          ],
        };
      } finally {
        state.over = true;
        await feed.stop();
        await naive.catch(() => undefined);
      }
    }),
  );

export const outboxScenarios: readonly Scenario[] = [
  {
    name: "outbox-order",
    promise: "W1, W7",
    claim: "across kill -9 of nodes a viewer of live events misses no committed event and sees a device's events in order, however long transactions stay open",
    needsRedis: true,
    control: { how: 'the reader queries "id > last seen" instead', red: "skipped" },
    run,
  },
];
