// HAProxy before PostgreSQL and before Redis, with its files from docs/deploy: the gateway follows whichever server takes writes, without an address of its own.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createNode, type Node } from "../../chaos/rig/node.ts";
import { COMMON_ENV, origin } from "../../chaos/rig/origin.ts";
import { type Rig, urlOf, withRig } from "../../chaos/rig/rig.ts";
import { ask } from "../../chaos/rig/sql.ts";
import { ROOT } from "../../flows/processes.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { startWorld } from "../../kit/gateway/world.ts";
import { type Child, plainEnv, startChild } from "../../kit/net/children.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { makeFolder } from "../../kit/setup/workspace.ts";
import { withClient } from "../../kit/stores/database.ts";
import { startRedis } from "../../kit/stores/redis.ts";

const WITHIN_MS = 60_000;

/** Starts HAProxy with a file of docs/deploy: its own port, and its two servers. */
const startHaproxy = async (name: string, servers: readonly [number, number]): Promise<{ readonly port: number; readonly child: Child }> => {
  const port = await freePort();
  const own = await readFile(join(ROOT, "docs/deploy", name), "utf8");
  const [first, second] = servers;
  const text = own
    .replace(/bind 127\.0\.0\.1:\d+/, `bind 127.0.0.1:${port}`)
    .replace(/10\.0\.0\.1:\d+ check/, `127.0.0.1:${first} check`)
    .replace(/10\.0\.0\.2:\d+ check/, `127.0.0.1:${second} check`);
  expect([...text.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, at]) => Number(at))).toEqual([port, ...servers]);
  const file = join(makeFolder("haproxy"), name);
  await writeFile(file, text);
  const child = startChild({ command: "haproxy", words: ["-db", "-f", file], env: { ...plainEnv(), PATH: `${process.env["PATH"]}:/usr/sbin` } });
  return { port, child };
};

/** HAProxy takes every server for good until its checks say otherwise. */
const hasLooked = (url: string): Promise<void> =>
  eventually(async () => {
    for (let n = 0; n < 4; n += 1)
      expect(await withClient(url, async (client) => (await client.query("show transaction_read_only")).rows)).toEqual([{ transaction_read_only: "off" }]);
  }, WITHIN_MS);

const create = async ({ credentials }: Rig, node: Node, deviceId: string): Promise<{ readonly status: number; readonly id: string; readonly code: string }> => {
  const headers = { "x-api-key": credentials.apiKey, "x-svc-tenant-id": credentials.tenantId, "content-type": "application/json" };
  const answer = await fetch(`${urlOf(node)}/v1/devices/${deviceId}/commands`, { method: "POST", headers, body: JSON.stringify({ type: "ping" }) });
  const body = (await answer.json()) as { code?: string; data?: { commandId: string } };
  return { status: answer.status, id: body.data?.commandId ?? "", code: body.code ?? "" };
};

test("before PostgreSQL: creates go on at the standby that takes over, and a server that only reads gets none", { timeout: 400_000 }, () =>
  withRig({ nodes: 1, seed: 1, standby: "sync" }, async (rig) => {
    const { postgres, standby } = rig;
    if (standby === null) throw new Error("the rig has no standby");
    const [member] = await rig.provision(1);
    const deviceId = member?.deviceId ?? "";
    await ask(postgres, "create role haproxy login");
    const haproxy = await startHaproxy("haproxy-postgres.cfg", [postgres.port, standby.postgres.port]);
    const { masterKey } = await origin();
    const env = { ...COMMON_ENV, DATA_DIR: makeFolder("behind"), MASTER_KEY: masterKey, DATABASE_URL: postgres.url(haproxy.port) };
    const node = await createNode("behind", env);
    try {
      await hasLooked(env.DATABASE_URL);
      await node.start();
      const before = await create(rig, node, deviceId);
      expect(before.status).toBe(201);

      // Its sessions stay, as after a demotion.
      await ask(postgres, "alter system set default_transaction_read_only = on");
      await ask(postgres, "select pg_reload_conf()");
      await eventually(async () => expect(await create(rig, node, deviceId)).toMatchObject({ status: 503 }), WITHIN_MS);
      await ask(postgres, "alter system reset default_transaction_read_only");
      await ask(postgres, "select pg_reload_conf()");
      const between = await eventually(async () => {
        const made = await create(rig, node, deviceId);
        expect(made.status).toBe(201);
        return made;
      }, WITHIN_MS);

      await postgres.kill();
      await standby.promote();
      const after = await eventually(async () => {
        const made = await create(rig, node, deviceId);
        expect(made.status).toBe(201);
        return made;
      }, WITHIN_MS);
      const ids = [before, between, after].map(({ id }) => id);
      const kept = await ask<{ command_id: string }>(standby.postgres, "select command_id from commands where command_id = any($1::text[])", [ids]);
      expect(kept.map(({ command_id }) => command_id).sort()).toEqual([...ids].sort());
    } finally {
      await node.stop();
      await haproxy.child.stop();
    }
  }),
);

test("before Redis: hints go through the replica that takes over", { timeout: 300_000 }, async () => {
  const [first, second] = [await startRedis(), await startRedis()];
  await second.ask("REPLICAOF", "127.0.0.1", String(first.port));
  const haproxy = await startHaproxy("haproxy-redis.cfg", [first.port, second.port]);
  const world = await startWorld({ REDIS_URL: `redis://127.0.0.1:${haproxy.port}` });
  const token = world.app.internalToken;
  const healthy = async (): Promise<string | undefined> => {
    const page = await (await fetch(`http://127.0.0.1:${world.app.internalPort()}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
    return /^mooring_pubsub_healthy\S* (\d)$/m.exec(page)?.[1];
  };
  try {
    await eventually(async () => expect(await healthy()).toBe("1"), WITHIN_MS);
    // Before its first checks HAProxy also takes the replica, and then ends the sessions there.
    await eventually(async () => expect(await second.ask("PUBSUB", "CHANNELS", "svc:*")).toBe("*0"), WITHIN_MS);
    await first.kill();
    await eventually(async () => expect(await healthy()).toBe("0"), WITHIN_MS);
    await second.ask("REPLICAOF", "NO", "ONE");
    await eventually(async () => expect(await healthy()).toBe("1"), WITHIN_MS);
    expect(await second.ask("PUBSUB", "CHANNELS", "svc:*")).toContain("svc:");
  } finally {
    await world.close();
    await haproxy.child.stop();
    await Promise.all([first.close(), second.close()]);
  }
});
