// A real Prometheus scrapes two nodes: it takes the alert rules, each of them can be evaluated, none fires, and every panel of the dashboards has data.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { createRandom, IssuedIdentity, type PairedDevice, systemTime, toPairedDevice } from "../../../agent-sim/agent/index.ts";
import { type AgentGroup, createAgentGroup } from "../../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../../agent-sim/fleet/command-tracker.ts";
import { ROOT } from "../../flows/processes.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { type Child, plainEnv, startChild } from "../../kit/net/children.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { startRedis } from "../../kit/stores/redis.ts";

const run = promisify(execFile);
const FOLDER = join(ROOT, "docs/observability");
const TOKEN = "a-token-for-prometheus-and-no-one-else";
const AGENTS = 6;
/** One try asks for every panel. */
const PATIENCE = { boundMs: 60_000, stepMs: 500 };
/** Panels of what does not happen here: no node dies while a command is on its way, and the database has no standby. */
const EMPTY = ["Delivered again, by cause", "Standbys behind"];

let redis: Awaited<ReturnType<typeof startRedis>>;
let nodes: readonly World[] = [];
let group: AgentGroup;
let prometheus: Child;
let folder = "";
let url = "";

const ask = async (path: string): Promise<{ readonly status: string; readonly data: unknown; readonly error?: string }> =>
  (await fetch(`${url}/api/v1/${path}`)).json() as ReturnType<typeof ask>;

/** Agents that run commands and one that leaves, a command that waits for it, and an answer that is an error. */
const makeTraffic = async (): Promise<void> => {
  const [first, second] = nodes as readonly [World, World];
  const tenant = await first.tenant();
  const made = await first.call(tenant.apiKey, "POST", "/v1/devices/provision", { body: { count: AGENTS } });
  const members = IssuedIdentity.array().parse(made.body.data).map(toPairedDevice);
  const seed = 3;
  const connect = async (some: readonly PairedDevice[]): Promise<AgentGroup> => {
    const made = createAgentGroup({
      url: first.url,
      members: some,
      tracker: createCommandTracker(systemTime.elapsedMs),
      time: systemTime,
      random: createRandom(seed),
      seed,
      heartbeatSec: 5,
      pollOnlyPct: 0,
      rampPerSecond: 100,
      onAlarm: () => undefined,
    });
    made.start();
    await eventually(() => expect(made.connected).toBe(some.length));
    return made;
  };
  group = await connect(members.slice(1));
  await (await connect(members.slice(0, 1))).stop();
  for (const { deviceId } of members) await second.call(tenant.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } });
  await second.call(tenant.apiKey, "GET", "/v1/devices/dev_none");
};

beforeAll(async () => {
  redis = await startRedis();
  const settings = { REDIS_URL: redis.url, INTERNAL_TOKEN: TOKEN };
  const first = await startWorld({ NODE_ID: "node-a", ...settings });
  nodes = [first, await startWorld({ NODE_ID: "node-b", ...settings }, { beside: first })];
  folder = await mkdtemp(join(tmpdir(), "mooring-prometheus-"));
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const config = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: [join(FOLDER, "rules.yml")],
    scrape_configs: [
      { job_name: "mooring", authorization: { credentials: TOKEN }, static_configs: [{ targets: nodes.map(({ app }) => `127.0.0.1:${app.internalPort()}`) }] },
    ],
  };
  await writeFile(join(folder, "prometheus.yml"), stringify(config));
  const words = [`--config.file=${join(folder, "prometheus.yml")}`, `--storage.tsdb.path=${join(folder, "data")}`, `--web.listen-address=127.0.0.1:${port}`];
  prometheus = startChild({ command: "prometheus", words, env: plainEnv() });
  await prometheus.waitFor("Server is ready to receive web requests", 60_000);
  await makeTraffic();
}, 120_000);
afterAll(async () => {
  await group?.stop();
  await prometheus?.stop();
  for (const node of [...nodes].reverse()) await node.close();
  await redis?.close();
  if (folder !== "") await rm(folder, { recursive: true });
});

test("promtool finds no fault in the rules, and their own tests pass", async () => {
  expect((await run("promtool", ["check", "rules", "rules.yml"], { cwd: FOLDER })).stdout).toContain("SUCCESS");
  expect((await run("promtool", ["test", "rules", "rules.test.yml"], { cwd: FOLDER })).stdout).toContain("SUCCESS");
});

test("both nodes are scraped with the token, and without it nobody reads them", async () => {
  await eventually(async () => {
    const { data } = await ask("targets?state=active");
    expect((data as { activeTargets: { health: string }[] }).activeTargets.map(({ health }) => health)).toEqual(["up", "up"]);
  });
  expect((await fetch(`http://127.0.0.1:${nodes[0]?.app.internalPort()}/metrics`)).status).toBe(401);
});

test("every panel of every dashboard has data", { timeout: 120_000 }, async () => {
  const files = (await readdir(FOLDER)).filter((name) => name.startsWith("dashboard-"));
  const dashboards = await Promise.all(files.map(async (name) => JSON.parse(await readFile(join(FOLDER, name), "utf8"))));
  const panels: readonly { title: string; targets: { expr: string }[] }[] = dashboards.flatMap(({ panels: own }) => own);
  expect(panels.length).toBeGreaterThan(25);
  await eventually(async () => {
    const empty: string[] = [];
    for (const { title, targets } of panels)
      for (const { expr } of targets) {
        const { data, error } = await ask(`query?query=${encodeURIComponent(expr.replaceAll("$__rate_interval", "1m"))}`);
        expect(error, title).toBeUndefined();
        if ((data as { result: readonly unknown[] }).result.length === 0) empty.push(title);
      }
    expect(empty).toEqual(EMPTY);
  }, PATIENCE);
});

test("Prometheus can evaluate every alert, and none fires for two healthy nodes", async () => {
  await eventually(async () => {
    const { data } = await ask("rules");
    const rules = (data as { groups: { rules: { name: string; health: string; state: string }[] }[] }).groups.flatMap((each) => each.rules);
    expect(rules.length).toBeGreaterThan(10);
    expect(rules.filter(({ health, state }) => health !== "ok" || state === "firing")).toEqual([]);
  });
});
