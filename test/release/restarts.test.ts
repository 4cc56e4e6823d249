// Gateways that die or stop under load: every accepted command ends, none is lost, none runs twice.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FleetOptions, type FleetProgress, runFleet } from "../../agent-sim/fleet/fleet.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import {
  type BootstrapCredentials,
  bootstrapTenant,
  connects,
  createSandbox,
  type GatewayProcess,
  processesOf,
  type Sandbox,
  startGatewayProcess,
  withDatabase,
} from "../flows/processes.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { withClient } from "../kit/stores/database.ts";

const AGENTS = 60;
const STOP_WITHIN_MS = 10_000;
const COMMANDS_BETWEEN = 60;
const LONGEST_LOAD_MS = 45_000;

let sandbox: Sandbox;
let gateway: GatewayProcess;
let credentials: BootstrapCredentials;
beforeAll(async () => {
  sandbox = await createSandbox({ HEARTBEAT_SECONDS: "2", SHUTDOWN_SECONDS: "8" });
  gateway = await startGatewayProcess(sandbox.env);
  credentials = await bootstrapTenant(sandbox, "--unlimited");
}, 60_000);
afterAll(() => sandbox.remove());

const load = (more: Partial<FleetOptions> = {}): FleetOptions => ({
  url: gateway.url,
  apiKey: credentials.apiKey,
  tenantId: credentials.tenantId,
  agents: AGENTS,
  durationMs: 4_000,
  commandsPerSecond: 40,
  seed: 7,
  drainMs: 40_000,
  ...more,
});

/** Runs a fleet, disturbs the gateway after enough commands, and ends after as many more: every agent must be back and every command ended. */
const disturbed = async (disturb: () => Promise<void>): Promise<void> => {
  const before = await rowsByOpenness();
  const notices: string[] = [];
  const enough = new AbortController();
  let work: Promise<void> | undefined;
  let atLeast = COMMANDS_BETWEEN;
  const onProgress = ({ phase, accepted }: FleetProgress): void => {
    if (phase !== "running" || accepted < atLeast) return;
    if (work !== undefined) enough.abort();
    work ??= disturb().finally(() => {
      atLeast = accepted + COMMANDS_BETWEEN;
    });
    atLeast = Number.POSITIVE_INFINITY;
  };
  // A busy machine makes it wait for its devices, and it says so.
  const onNotice = (text: string): void => void (text.includes("devices from the gateway") || notices.push(text));
  const summary = await runFleet(load({ durationMs: LONGEST_LOAD_MS, signal: enough.signal }), { onProgress, onNotice });
  await work;
  const { accepted, terminal, lost, executedTwice } = summary.commands;
  expect({ lost, executedTwice, open: accepted - terminal, connected: summary.connected, ok: summary.ok, notices }).toEqual({
    lost: 0,
    executedTwice: 0,
    open: 0,
    connected: AGENTS,
    ok: true,
    notices: [],
  });
  expect(accepted).toBeGreaterThanOrEqual(COMMANDS_BETWEEN * 2);
  expect(summary.reconnects).toBeGreaterThanOrEqual(AGENTS);
  // The fleet repeated the requests that died with the gateway under their keys: each made exactly one command.
  expect(await rowsByOpenness()).toEqual({ total: before.total + accepted, open: 0 });
};

/** Read from the database, without asking the gateway. */
const rowsByOpenness = (): Promise<{ total: number; open: number }> =>
  withDatabase(sandbox, (url) =>
    withClient(url, async (client) => {
      const { rows } = await client.query(`select count(*)::int as total, count(*) filter (where finished_at is null)::int as open from commands_now`);
      return rows[0];
    }),
  );

const restart = async (): Promise<void> => {
  gateway = await startGatewayProcess(sandbox.env);
};

// An agent that finds no gateway for half a minute rightly waits a minute or two, and the fleet waits for it.
describe("under load", { timeout: 300_000 }, () => {
  test("kill -9 under load loses no command and runs none twice", async () => {
    await disturbed(async () => {
      await gateway.end("SIGKILL");
      await restart();
    });
  });

  test("SIGTERM under load ends the process in time with code 0, and the next process continues", async () => {
    await disturbed(async () => {
      const { code } = await withTimeout(gateway.end("SIGTERM"), STOP_WITHIN_MS, "the gateway did not end");
      expect(code).toBe(0);
      expect(await processesOf(sandbox.dir)).toEqual([]);
      await restart();
    });
  });
});

describe("stop", { timeout: 60_000 }, () => {
  test("a request in progress is answered before the process ends, and no process stays behind", async () => {
    const headers = { "x-api-key": credentials.apiKey, "x-svc-tenant-id": credentials.tenantId, "content-type": "application/json" };
    const post = (path: string, body: object): Promise<Response> => fetch(`${gateway.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const made = (await (await post("/v1/devices/provision", { count: 1 })).json()) as { data: { device_id: string }[] };
    const deviceId = made.data[0]?.device_id ?? "";
    const [url, stopped, answered] = await withDatabase(sandbox, (address) =>
      withClient(address, async (client) => {
        await client.query("begin");
        await client.query("lock table commands in exclusive mode");
        const held = post(`/v1/devices/${deviceId}/commands`, { type: "ping" });
        await eventually(async () => {
          const { rows } = await client.query("select 1 from pg_locks where not granted and relation = 'commands'::regclass");
          expect(rows.length).toBeGreaterThan(0);
        });
        const ending = gateway.end("SIGTERM");
        await eventually(() => expect(connects(gateway.url)).resolves.toBe(false));
        await client.query("commit");
        return [gateway.url, await ending, await (await held).status] as const;
      }),
    );
    expect({ code: stopped.code, answered }).toEqual({ code: 0, answered: 201 });
    expect(await connects(url)).toBe(false);
    expect(await processesOf(sandbox.dir)).toEqual([]);
  });

  test("a second gateway on the same port ends with a message and does not affect the first", async () => {
    await restart();
    await expect(startGatewayProcess(sandbox.env)).rejects.toThrow(
      /^the gateway ended: cannot listen on 127\.0\.0\.1:\d+: is the port taken[^\n]*PORT[^\n]*\n$/,
    );
    expect((await fetch(`${gateway.url}/v1/health/ready`)).status).toBe(200);
  });
});

describe("checker", { timeout: 60_000 }, () => {
  test("the fleet's checker reports accepted commands that vanish from the database", async () => {
    const notices: string[] = [];
    const removed = await withDatabase(sandbox, (url) =>
      withClient(url, async (client) => {
        let work: Promise<unknown> | undefined;
        const thin = (): Promise<unknown> =>
          client.query(
            "delete from commands where command_id in (select command_id from commands_now where status = 'succeeded' order by command_id desc limit 3)",
          );
        const onProgress = ({ phase, accepted, open }: FleetProgress): void => {
          if (phase === "running" && accepted - open > 5) work ??= thin();
        };
        const summary = await runFleet(load({ agents: 3, durationMs: 4_000, commandsPerSecond: 10, drainMs: 3_000 }), {
          onProgress,
          onNotice: (text) => notices.push(text),
        });
        await work;
        return summary;
      }),
    );
    expect({ lost: removed.commands.lost, ok: removed.ok, unknown: removed.commands.byStatus["unknown"] }).toEqual({ lost: 3, ok: false, unknown: 3 });
    expect(notices.join()).toMatch(/lost commands, for example/);
    await gateway.end("SIGTERM");
  });
});
