// Webhooks under fire: every event reaches a receiver that often fails, in order, and an endpoint that hangs delays no other.
import { createRandom, pause, type Random, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { type Arrival, type ChaosReceiver, RECEIVER_ENV, type ReceiverOptions, startChaosReceiver } from "../rig/receiver.ts";
import { type Rig, withRig } from "../rig/rig.ts";
import { DELIVERED_IS_ENOUGH, RETRIES_HOLD_NOTHING } from "../rig/sabotage.ts";
import { openSql, type SqlConnection, withSql } from "../rig/sql.ts";
import { firstAttempts, type Sent, subscribe, WEBHOOK_TYPES, writeEvents } from "../rig/webhook-events.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const FAILING = 0.2;
const REST_MS = 150_000;
/** A control loses events for good, and nobody needs to wait for them. */
const CONTROL_REST_MS = 25_000;
const HURRY_EVERY_MS = 500;
const FULL = { subjects: 250, events: 10_000, perSecond: 160, killEveryMs: 10_000, redisEveryMs: 15_000 };
const SHORT = { subjects: 25, events: 800, perSecond: 80, killEveryMs: 4_000, redisEveryMs: 5_000 };

const withReceiver = async <T>(options: ReceiverOptions, use: (receiver: ChaosReceiver) => Promise<T>): Promise<T> => {
  const receiver = await startChaosReceiver(options);
  try {
    return await use(receiver);
  } finally {
    await receiver.close();
  }
};

/** Until `over`, does its work at this interval; counts how often. */
const every = async (intervalMs: number, over: () => boolean, work: (turn: number) => Promise<unknown>): Promise<number> => {
  for (let [turn, dueMs] = [0, time.elapsedMs() + intervalMs]; ; ) {
    await pause(time, 50);
    if (over()) return turn;
    if (time.elapsedMs() < dueMs) continue;
    await work(turn);
    turn += 1;
    dueMs += intervalMs;
  }
};

// Two statements, because one would lock the rows in another order than the gateway.
const HURRY = [
  "update webhook_deliveries set next_attempt_at = now() - interval '1 second' where status = 'retrying' and next_attempt_at > now() + interval '7 seconds' returning webhook_id",
  "update webhook_endpoints set next_due_at = now() - interval '1 second', epoch = epoch + 1 where webhook_id = any($1::text[])",
] as const;
/** The second attempt comes after 5 s as in the field; later ones, after 5 min to 24 h there, come at once. */
const hurry = async (sql: SqlConnection): Promise<void> => {
  const waiting = await sql.query<{ webhook_id: string }>(HURRY[0]);
  if (waiting.length > 0) await sql.query(HURRY[1], [[...new Set(waiting.map(({ webhook_id }) => webhook_id))]]);
};

const killInTurn = async (rig: Rig, turn: number, random: Random): Promise<void> => {
  const node = rig.nodes[turn % rig.nodes.length];
  await pause(time, random() * 200);
  await node?.kill();
  await node?.start();
};

const restartRedis = async ({ redis }: Rig): Promise<void> => {
  await redis?.kill();
  await redis?.start();
};

/** An event counts where its first delivery succeeded; until then the later ones of its subject must wait. */
const judge = (sent: readonly Sent[], arrivals: readonly Arrival[]) => {
  const events = new Map(sent.map((event) => [event.id, event]));
  const delivered = new Set<string>();
  const last = new Map<string, number>();
  const count = { duplicates: 0, reordered: 0, misdirected: 0, attempts: 0 };
  for (const { path, eventId, ok } of arrivals) {
    const event = events.get(eventId);
    if (event === undefined) continue;
    count.attempts += 1;
    if (path !== `/${event.type}`) count.misdirected += 1;
    if (!ok) continue;
    if (delivered.has(eventId)) {
      count.duplicates += 1;
      continue;
    }
    delivered.add(eventId);
    if (event.n !== (last.get(event.subject) ?? 0) + 1) count.reordered += 1;
    last.set(event.subject, Math.max(event.n, last.get(event.subject) ?? 0));
  }
  return { ...count, lost: sent.filter(({ id }) => !delivered.has(id)).length };
};

const runDelivery = ({ seed, scale, control }: Context, sabotage: string): Promise<ScenarioOutcome> =>
  withRig({ nodes: 2, seed, redis: true, env: RECEIVER_ENV, sabotage: control ? sabotage : undefined }, (rig) =>
    withReceiver({ random: createRandom(seed + 1), failing: FAILING }, (receiver) =>
      withSql(rig.postgres, async (sql) => {
        const { subjects, events: count, perSecond, killEveryMs, redisEveryMs } = scale.agents > 50 ? FULL : SHORT;
        const random = createRandom(seed);
        await subscribe(
          rig,
          receiver,
          WEBHOOK_TYPES.map((type) => ({ path: `/${type}`, type })),
        );
        const state = { over: false, written: false };
        const hurrying = await openSql(rig.postgres);
        const trouble = Promise.all([
          every(
            killEveryMs,
            () => state.written,
            (turn) => killInTurn(rig, turn, random),
          ),
          every(
            redisEveryMs,
            () => state.written,
            () => restartRedis(rig),
          ),
          every(
            HURRY_EVERY_MS,
            () => state.over,
            () => hurry(hurrying),
          ),
        ]);
        try {
          const sent = await writeEvents({ sql, tenantId: rig.credentials.tenantId, types: WEBHOOK_TYPES, subjects, count, perSecond });
          state.written = true;
          const isComplete = (): boolean => judge(sent, receiver.arrivals).lost === 0;
          await until(time, isComplete, { everyMs: 500, withinMs: control ? CONTROL_REST_MS : REST_MS });
          state.over = true;
          const [kills, restarts] = await trouble;
          const { duplicates, attempts, ...violations } = judge(sent, receiver.arrivals);
          const first = firstAttempts(sent, receiver.arrivals);
          return {
            n: sent.length,
            faults: (kills ?? 0) + (restarts ?? 0),
            violations,
            latencyMs: first,
            notes: [
              `n counts committed events for ${WEBHOOK_TYPES.length} webhooks, ${subjects} subjects each, across ${kills} kills of a node and ${restarts} restarts of Redis; ms are from the commit to the first attempt`,
              `the receiver failed ${FAILING * 100} % of ${attempts} attempts; ${duplicates} events came again after a success; attempts after the second come without their delay of minutes to hours`,
            ],
          };
        } finally {
          Object.assign(state, { over: true, written: true });
          await trouble.catch(() => undefined);
          await hurrying.close();
        }
      }),
    ),
  );

/** Calls of a tenant at once, on one node. */
const PLACES = 20;
const PER_ENDPOINT = 4;
const NOISE = { factor: 2, ms: 500 };
const HANG_FULL = { webhooks: 100, events: 40, perSecond: 2 };
const HANG_SHORT = { webhooks: 25, events: 16, perSecond: 2 };

const runHang = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const { webhooks, events: count, perSecond } = scale.agents > 50 ? HANG_FULL : HANG_SHORT;
  const hanging = { paths: 0 };
  const hangs = (path: string): boolean => Number(path.slice(1)) < hanging.paths;
  return withRig({ nodes: 1, seed, env: RECEIVER_ENV }, (rig) =>
    withReceiver({ random: createRandom(seed + 1), failing: 0, hangs }, (receiver) =>
      withSql(rig.postgres, async (sql) => {
        const [type] = WEBHOOK_TYPES;
        const paths = Array.from({ length: webhooks }, (_, index) => `/${index}`);
        await subscribe(
          rig,
          receiver,
          paths.map((path) => ({ path, type })),
        );
        const most = control ? PLACES / PER_ENDPOINT + 1 : 1;
        const others = (path: string): boolean => Number(path.slice(1)) >= most;
        const phase = async () => {
          const sent = await writeEvents({ sql, tenantId: rig.credentials.tenantId, types: [type], subjects: count, count, perSecond });
          const attempted = () => firstAttempts(sent, receiver.arrivals, others);
          await until(time, () => attempted().attempted === count * (webhooks - most), { everyMs: 200, withinMs: 60_000 });
          return attempted();
        };
        const before = await phase();
        hanging.paths = most;
        const during = await phase();
        const hung = receiver.arrivals.filter(({ path, ok }) => !ok && !others(path)).length;
        const bound = NOISE.factor * (before.p99 ?? 0) + NOISE.ms;
        return {
          n: during.attempted,
          faults: hung,
          violations: {
            moved: (during.p99 ?? Number.POSITIVE_INFINITY) > bound ? 1 : 0,
            unattempted: count * (webhooks - most) - during.attempted,
            unhung: hung === 0 ? 1 : 0,
          },
          latencyMs: during,
          notes: [
            `n counts first attempts at ${webhooks - most} webhooks while ${most} of the same tenant hung; ms are from the commit to the first attempt: p99 was ${before.p99} ms before`,
          ],
        };
      }),
    ),
  );
};

export const webhookScenarios: readonly Scenario[] = [
  {
    name: "webhook-delivery",
    promise: "W1",
    claim: "across kill -9 of nodes and restarts of Redis every committed event reaches a receiver that fails a fifth of the attempts",
    needsRedis: true,
    control: { how: "a failed attempt is stored as a success", red: "lost" },
    run: (context) => runDelivery(context, DELIVERED_IS_ENOUGH),
  },
  {
    name: "webhook-order",
    promise: "W1",
    claim: "under the same faults the events of one subject arrive in order",
    needsRedis: true,
    control: { how: "an event that waits for its next attempt holds back no later one of its subject", red: "reordered" },
    run: (context) => runDelivery(context, RETRIES_HOLD_NOTHING),
  },
  {
    name: "webhook-hang",
    promise: "W4",
    claim: "an endpoint that never answers does not move the p99 of the first attempts at the tenant's others",
    control: { how: `${PLACES / PER_ENDPOINT + 1} endpoints hang, which take all ${PLACES} places of the tenant`, red: "moved" },
    run: runHang,
  },
];
