// Presence in PostgreSQL: rows per second through the product's flush, beside one prisma.update each, and the lag of a row behind its socket.

import { randomUUID } from "node:crypto";
import { systemClock } from "../../../server/core/clock.ts";
import { createPresence } from "../../../server/features/devices/presence.ts";
import { deviceSettings } from "../../../server/features/devices/settings.ts";
import { createBatch } from "../../../server/platform/database/batch.ts";
import { openDb } from "../../../server/platform/database/db.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { quantile, summarise } from "../arithmetic.ts";
import { startGatewayWithAgents } from "../gateway-with-agents.ts";
import type { BenchPlan } from "../plan.ts";
import type { Finding } from "../report.ts";
import { checkReply, InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

const CHUNK = 1_000;
/** The gateway's promise at a heartbeat of 30 s. */
const OFFLINE_AFTER_MS = 100_000;
/** As many single updates at once as a gateway has connections. */
const AT_ONCE = 20;
const LAG_LOOKS = 20;
const LAG_EVERY_MS = 400;

/** Calls `write` for that long and returns the rows written per second. */
const pace = async (forMs: number, write: (round: number) => Promise<number>): Promise<number> => {
  const startMs = performance.now();
  let rows = 0;
  for (let round = 0; performance.now() - startMs < forMs; round += 1) rows += await write(round);
  return (rows * 1_000) / (performance.now() - startMs);
};

const figures = (): Readonly<Record<string, number>> => ({
  cpu: Math.round(Math.random() * 1_000) / 10,
  memory: Math.round(Math.random() * 1_000) / 10,
  uptimeSeconds: 123_456,
});

export const heartbeats = (stage: BenchStage, plan: BenchPlan, agents: number): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const { gateway, tenant, loader } = await startGatewayWithAgents(scope, agents);
    await loader.connect(agents, 64);

    // Every agent sends one heartbeat per second, so a row may be a second old without lagging.
    const running = loader.run({ warmMs: 7_000, windowMs: LAG_LOOKS * LAG_EVERY_MS, connections: agents, rate: agents });
    await new Promise((resolve) => setTimeout(resolve, 7_000));
    const lags: number[] = [];
    for (let look = 0; look < LAG_LOOKS; look += 1) {
      const rows = await scope.query<{ lag: number }>(
        "select extract(epoch from now() - last_heartbeat_at)::float8 as lag from device_presence where tenant_id = $1",
        [tenant.tenantId],
      );
      lags.push(...rows.map(({ lag }) => lag));
      await new Promise((resolve) => setTimeout(resolve, LAG_EVERY_MS));
    }
    checkReply("gateway", await running);
    await loader.cut();
    await gateway.stop();

    const db = await openDb({ clock: systemClock, url: scope.databaseUrl, poolSize: AT_ONCE, log: silentLog });
    scope.add(() => db.close());
    const rows = await scope.query<{ device_id: string; epoch: string }>(
      "update device_presence set epoch = epoch + 1, session_id = $2, connectivity = 'realtime' where tenant_id = $1 returning device_id, epoch",
      [tenant.tenantId, randomUUID()],
    );
    const chunks = Array.from({ length: Math.ceil(rows.length / CHUNK) }, (_, at) => rows.slice(at * CHUNK, (at + 1) * CHUNK));
    const presence = createPresence({
      db,
      emit: async () => undefined,
      createBatch,
      signatureLock: { locked: async () => undefined },
      probe: async () => false,
      nodeId: "node",
      settings: deviceSettings(),
    });
    const flush = async (round: number): Promise<number> => {
      const chunk = chunks[round % chunks.length] ?? [];
      const current = await presence.flush(
        chunk.map(({ device_id, epoch }) => ({
          deviceId: device_id,
          epoch: Number(epoch),
          seenAgoMs: 0,
          patienceMs: OFFLINE_AFTER_MS,
          heartbeatAgoMs: 0,
          metrics: figures(),
        })),
      );
      if (current.size !== chunk.length) throw new InvalidRun(`${current.size} of ${chunk.length} rows were written`);
      return current.size;
    };
    const update = async (row: number): Promise<void> => {
      const { device_id } = rows[row % rows.length] ?? { device_id: "" };
      const now = new Date();
      await db.system.devicePresence.update({
        where: { deviceId: device_id },
        data: { lastSeenAt: now, lastHeartbeatAt: now, offlineAfter: now, metrics: figures() },
      });
    };
    const oneByOne = async (round: number): Promise<number> => {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => update(round * AT_ONCE + at)));
      return AT_ONCE;
    };
    const [joined, single]: [number[], number[]] = [[], []];
    for (let round = 0; round <= plan.rounds; round += 1) {
      const pair = [await pace(plan.windowMs, flush), await pace(plan.windowMs, oneByOne)] as const;
      process.stderr.write(`  ${String(round).padStart(2)}  flush ${Math.round(pair[0])} rows/s, prisma.update ${Math.round(pair[1])} rows/s\n`);
      if (round === 0) continue;
      joined.push(pair[0]);
      single.push(pair[1]);
    }
    const [all, ratio] = [summarise(joined), summarise(joined.map((value, at) => value / (single[at] ?? Number.NaN)))];
    return [
      { id: "persisted-heartbeats", value: all.value, span: [all.min, all.max], rounds: joined },
      { id: "persisted-heartbeats-vs-prisma", value: ratio.value, span: [ratio.min, ratio.max], rounds: ratio.rounds },
      { id: "persisted-heartbeats-lag", value: Math.max(0, quantile(lags, 0.99) - 1), note: "beyond the second between two heartbeats" },
    ];
  });
