// No webhook and no alert channel reaches what the gateway itself listens on, in any notation, neither in the bare default nor with the node's networks
// on the allow-list. The listeners are those that the operating system names, so a new one is found here.
import { readdir, readFile, readlink } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bootstrapTenant, createSandbox, processesOf, type Sandbox, startGatewayProcess } from "../flows/processes.ts";
import { onSharedServer } from "../flows/shared-server.ts";
import { startListener } from "../kit/net/listeners.ts";

/** The ports on which these processes listen. */
const listeningPorts = async (pids: readonly number[]): Promise<readonly number[]> => {
  const inodes = new Set<string>();
  for (const pid of pids)
    for (const name of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(await readlink(`/proc/${pid}/fd/${name}`).catch(() => "")) ?? [];
      if (inode !== undefined) inodes.add(inode);
    }
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8")));
  const rows = tables.flatMap((table) => table.trim().split("\n").slice(1)).map((row) => row.trim().split(/\s+/));
  const LISTEN = "0A";
  const ports = rows.flatMap(([, local = "", , state, , , , , , inode = ""]) =>
    state === LISTEN && inodes.has(inode) ? [Number.parseInt(local.split(":")[1] ?? "", 16)] : [],
  );
  return [...new Set(ports)];
};

const OWN_ADDRESSES = Object.values(networkInterfaces()).flatMap((all = []) =>
  all.map(({ address }) => address).filter((address) => !address.startsWith("fe80")),
);
const HOSTS = [
  ...["127.0.0.1", "127.0.0.2", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "0", "localhost", "LOCALHOST"],
  ...["[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:0.0.0.0]"],
  ...OWN_ADDRESSES.map((address) => (address.includes(":") ? `[${address}]` : address)),
];

describe.each([
  ["in the bare default", null],
  ["on all addresses, with the node's networks on the allow-list", { HOST: "0.0.0.0", WEBHOOK_ALLOW_CIDRS: "0.0.0.0/0,::/0", WEBHOOK_ALLOW_HTTP: "true" }],
  ["on all addresses of both families", { HOST: "::", WEBHOOK_ALLOW_CIDRS: "0.0.0.0/0,::/0", WEBHOOK_ALLOW_HTTP: "true" }],
])("%s", (_name, given) => {
  /** The public listener, the internal one, and the embedded database of the bare default. */
  const least = given === null ? 3 : 2;
  let sandbox: Sandbox;
  let own: readonly number[];
  let call: (path: string, body: object) => Promise<{ readonly status: number; readonly body: unknown }>;
  beforeAll(async () => {
    sandbox = await createSandbox({ RATE_LIMIT_STANDARD: "off", ...(given === null ? {} : await onSharedServer(given)) });
    const { pid } = await startGatewayProcess(sandbox.env);
    const { token } = await bootstrapTenant(sandbox, "--unlimited");
    call = async (path, body) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const answer = await fetch(`http://127.0.0.1:${sandbox.env["PORT"]}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: answer.status, body: await answer.json() };
    };
    own = await listeningPorts([pid, ...(await processesOf(sandbox.dir)).map((each) => each.pid)]);
  }, 120_000);
  afterAll(() => sandbox.remove());

  test("nothing of its own is reached", { timeout: 120_000 }, async () => {
    expect(own.length).toBeGreaterThanOrEqual(least);
    expect(own).toContain(Number(sandbox.env["PORT"]));
    for (const port of own)
      for (const host of HOSTS) {
        const url = `http://${host}:${port}/v1/livez`;
        const hook = await call("/webhooks", { url, events: ["device.*"] });
        expect([url, hook.status]).toEqual([url, 422]);
        expect(hook.body).toMatchObject({ code: "WEBHOOK_URL_NOT_ALLOWED" });
      }
    const channel = await call("/alert-channels", { name: "own", type: "webhook", config: { url: `http://localhost:${own[0]}/` } });
    expect(channel).toMatchObject({ status: 422 });
  });

  test("another port of the machine is reached", async () => {
    const other = await startListener("127.0.0.1");
    try {
      for (const host of ["127.0.0.1", "localhost"])
        expect(await call("/webhooks", { url: `http://${host}:${other.port}/`, events: ["device.*"] })).toMatchObject({ status: 201 });
    } finally {
      await other.close();
    }
  });
});
