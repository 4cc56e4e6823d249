// A bulk operation over many devices while every node is killed in turn, and a single item of another tenant beside it. `--agents 10000` makes a million items, which takes about seven minutes.
import { pause, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import type { TenantCredentials } from "../../../../agent-sim/fleet/portal.ts";
import { send } from "../../rig/calls.ts";
import { type Rig, withRig } from "../../rig/rig.ts";
import { ITEMS_ARE_COUNTED_BESIDE } from "../../rig/sabotage.ts";
import { ask } from "../../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";

const NODES = 3;
const ITEMS_PER_AGENT = 100;
const CALLS_MS = 60_000;
/** For each thousand items, beside a minute. */
const REST_MS = 2_000;
const BESIDE_MS = 5_000;
const LOOK_MS = 200;

const DEVICES = `insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, status, agent_version, secret, updated_at)
  select 'dev_' || lpad(n::text, 26, '0') || $3, $1, (select deployment_id from deployments where tenant_id = $1 and is_default), 'agt_' || n || $3, n || $3, 'offline', '1.0.0', '\\x00', now()
    from generate_series(1, $2::int) n`;

/** By SQL, because nothing has to connect. */
const addDevices = async ({ postgres }: Rig, { tenantId }: TenantCredentials, count: number, mark: string): Promise<void> => {
  await ask(postgres, DEVICES, [tenantId, count, mark]);
  await ask(postgres, `update tenants set limit_overrides = '{"bulkTargets": null, "hosts": null}' where tenant_id = $1`, [tenantId]);
};

const begin = async ({ http }: Rig, credentials: TenantCredentials): Promise<string> => {
  const body = { operation: "device.tag", target: { selector: { agentVersion: "1.0.0" } }, params: { add: ["done"] } };
  return String((await send({ http, credentials }, "POST", "/bulk-operations", body))["operationId"]);
};

const FACTS = `
  with rows as materialized (select * from bulk_items where operation_id = $1)
  select o.status, o.total,
    (o.pending <> (select count(*) from rows where status = 'pending') or o.succeeded <> (select count(*) from rows where status = 'succeeded'))::int as miscounted,
    (select count(*) from rows where status <> 'succeeded')::int as unfinished,
    (select count(*) from rows i join devices d on d.device_id = i.target_id where i.status = 'succeeded' and not d.tags @> array['done'])::int as undone
  from bulk_operations o where o.operation_id = $1`;
interface Facts {
  readonly [column: string]: unknown;
  readonly status: string;
  readonly total: number;
  readonly miscounted: number;
  readonly unfinished: number;
  readonly undone: number;
}

const isOver = async ({ postgres }: Rig, operationId: string): Promise<boolean> => {
  const [row] = await ask<{ over: boolean }>(postgres, "select completed_at is not null as over from bulk_operations where operation_id = $1", [operationId]);
  return row?.over === true;
};
const untilOver = async (rig: Rig, operationId: string, withinMs: number): Promise<number | null> => {
  const startMs = time.elapsedMs();
  while (time.elapsedMs() - startMs < withinMs) {
    if (await isOver(rig, operationId)) return time.elapsedMs() - startMs;
    await pause(time, LOOK_MS);
  }
  return null;
};

/** Kills each node in turn, and starts it again, until the operation or the time is over. Returns the number of kills. */
const killInTurn = async (rig: Rig, operationId: string, withinMs: number): Promise<number> => {
  const untilMs = time.elapsedMs() + withinMs;
  let kills = 0;
  for (; kills < NODES || (time.elapsedMs() < untilMs && !(await isOver(rig, operationId))); kills += 1) {
    const node = rig.nodes[kills % NODES];
    await node?.kill();
    await pause(time, LOOK_MS);
    await node?.start();
  }
  return kills;
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: NODES, seed, redis: true, sabotage: control ? ITEMS_ARE_COUNTED_BESIDE : undefined }, async (rig) => {
    const items = scale.agents * ITEMS_PER_AGENT;
    await addDevices(rig, rig.credentials, items, "a");
    const other = await rig.tenant();
    await addDevices(rig, other, 1, "b");
    const startMs = time.elapsedMs();
    const operationId = await begin(rig, rig.credentials);
    const besideMs = await untilOver(rig, await begin(rig, other), CALLS_MS);
    const restMs = 60_000 + (items / 1_000) * REST_MS;
    const kills = control ? 0 : await killInTurn(rig, operationId, restMs);
    await untilOver(rig, operationId, control ? 15_000 : restMs);
    const tookMs = Math.round(time.elapsedMs() - startMs);
    const [facts] = await ask<Facts>(rig.postgres, FACTS, [operationId]);
    if (facts === undefined) throw new Error("the operation is gone");
    const { status, total, miscounted, unfinished, undone } = facts;
    return {
      n: total,
      faults: control ? 1 : kills,
      violations: { missing: items - total, miscounted, unfinished, undone, starved: besideMs === null || besideMs > BESIDE_MS ? 1 : 0 },
      latencyMs: { p50: besideMs, p99: besideMs },
      notes: [`${total} items ended as ${status} after ${tookMs} ms; the figure is what a single item of another tenant took beside them`],
    };
  });

export const bulkKillScenarios: readonly Scenario[] = [
  {
    name: "bulk-kills",
    promise: "D6",
    claim:
      "a bulk operation survives kill -9 of every node in turn: each item ends once, the counts are right, and another tenant's single item ends within 5 s",
    needsRedis: true,
    control: { how: "the counts of the items are written outside the step's transaction, and some never", red: "miscounted" },
    run,
  },
];
