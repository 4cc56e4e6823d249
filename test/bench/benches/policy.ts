// One run of a backup policy over simulated devices: how long it takes, and what other calls notice of it.
import { createHttp, createRandom, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createAgentGroup } from "../../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../../agent-sim/fleet/command-tracker.ts";
import { createDeploymentPortal, deployAll, ordersFor } from "../../../agent-sim/fleet/deployments.ts";
import { median } from "../arithmetic.ts";
import { authOf, createCaller } from "../caller.ts";
import { createTenant, provision, startBenchGateway, waitUntil } from "../gateway.ts";
import { startLoader } from "../loader.ts";
import type { Finding } from "../report.ts";
import { writeRequests } from "../requests.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

export interface PolicyPlan {
  readonly devices: number;
  readonly rounds: number;
  readonly callsPerSecond: number;
}

const SEED = 7;
const CONNECT_WITHIN_MS = 120_000;
const DEPLOY_WITHIN_MS = 300_000;
const RUN_WITHIN_MS = 300_000;
const CALLERS = 16;
/** Long enough for a thousand calls, and short enough to lie within a run. */
const WINDOW_MS = 10_000;
/** The agents have told what the gateway asked of them before. */
const SETTLE_MS = 10_000;

const ACTIVE = "select count(*)::int as active from apps where tenant_id = $1 and status = 'running'";
const RUN = "select status, completed, ended_at is not null as ended from backup_runs where tenant_id = $1 and run_id = $2";
interface RunRow {
  readonly status: string;
  readonly completed: number;
  readonly ended: boolean;
}

export const policy = (stage: BenchStage, { devices, rounds, callsPerSecond }: PolicyPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const gateway = await startBenchGateway(scope, { cpu: null });
    const tenant = await createTenant(scope, { unlimited: true });
    const members = await provision(gateway, tenant, devices);
    const http = createHttp(gateway.url, CALLERS);
    const group = createAgentGroup({
      ...{ url: gateway.url, members, tracker: createCommandTracker(time.elapsedMs), time, random: createRandom(SEED), seed: SEED },
      ...{ heartbeatSec: null, pollOnlyPct: 0, rampPerSecond: 200, onAlarm: () => undefined },
    });
    const { post } = createCaller(http, tenant);
    try {
      group.start();
      await waitUntil(() => (group.connected === devices ? true : undefined), { withinMs: CONNECT_WITHIN_MS });
      const retry = { time, random: Math.random, untilMs: time.elapsedMs() + DEPLOY_WITHIN_MS };
      await deployAll(createDeploymentPortal(http, tenant), ordersFor(members, 1, DEPLOY_WITHIN_MS / 1_000), retry);
      const isActive = async () => ((await scope.query<{ active: number }>(ACTIVE, [tenant.tenantId]))[0]?.active === devices ? true : undefined);
      await waitUntil(isActive, { withinMs: DEPLOY_WITHIN_MS });
      const target = {
        deviceIds: [],
        tags: [],
        appIds: (await scope.query<{ app_id: string }>("select app_id from apps where tenant_id = $1", [tenant.tenantId])).map(({ app_id }) => app_id),
      };
      const schedule = `0 ${(new Date().getUTCHours() + 12) % 24} * * *`;
      const { policyId } = await post("/backup-policies", { name: "all", schedule, retention: { keepLast: 1 }, target });
      const caller = await startLoader(scope, { protocol: "http", port: gateway.port, connections: CALLERS, serverPids: [gateway.pid] });
      await caller.requests(writeRequests(scope, [{ method: "GET", path: "/v1/devices?pageSize=20", headers: authOf(tenant), expected: `"success":true` }]));
      const p99 = async (): Promise<number> => {
        await caller.connect(CALLERS, CALLERS);
        return (await caller.run({ warmMs: 0, windowMs: WINDOW_MS, connections: CALLERS, rate: callsPerSecond })).p99Ms;
      };
      const measure = async () => {
        await pause(time, SETTLE_MS);
        const alone = await p99();
        const startedMs = performance.now();
        const { runId } = await post(`/backup-policies/${String(policyId)}/run`, {});
        const look = async () => {
          const [row] = await scope.query<RunRow & Record<string, unknown>>(RUN, [tenant.tenantId, runId]);
          return row?.ended === true ? row : undefined;
        };
        const over = waitUntil(look, { withinMs: RUN_WITHIN_MS }).then((row) => ({ row, seconds: (performance.now() - startedMs) / 1_000 }));
        const beside = await p99();
        const { row, seconds } = await over;
        if (row.completed !== devices) throw new InvalidRun(`the run ended as ${row.status} with ${row.completed} of ${devices} backups`);
        return { seconds, ratio: beside / alone, alone, beside };
      };
      const all: Awaited<ReturnType<typeof measure>>[] = [];
      for (let round = 0; round < rounds; round += 1) all.push(await measure());
      const finding = (id: "policy-seconds" | "policy-beside", values: readonly number[], note: string): Finding => ({
        ...{ id, value: median(values), span: [Math.min(...values), Math.max(...values)], rounds: values, note },
      });
      const medianOf = (name: "alone" | "beside"): string => median(all.map((one) => one[name])).toFixed(1);
      return [
        finding(
          "policy-seconds",
          all.map(({ seconds }) => seconds),
          `${devices} devices, no jitter`,
        ),
        finding(
          "policy-beside",
          all.map(({ ratio }) => ratio),
          `alone ${medianOf("alone")} ms, beside ${medianOf("beside")} ms`,
        ),
      ];
    } finally {
      await group.stop();
      http.close();
    }
  });
