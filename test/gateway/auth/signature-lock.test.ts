// S4: once an agent has proved signature v2, the gateway accepts nothing less from it, over every transport, on every node and after restarts.
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { type AgentIdentity, CLOSE, HEADERS_V2, sign, signedHeaders, signedHeadersV2 } from "../../../protocol/index.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Answer, type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { startRedis, type TestRedis } from "../../kit/stores/redis.ts";

const FREE = { RATE_LIMIT_FAILED_AUTH: "off", RATE_LIMIT_AGENT: "off", RATE_LIMIT_CONNECT: "off" };
const ME = "/v1/agent/me";
const CONNECT = "/v1/agent/connect";
const REFUSED = [401, "INVALID_SIGNATURE", { reason: "signature_version", accepted: [2] }];

let redis: TestRedis;
let world: World;
/** Another node on the same database and Redis. */
let other: World;
let tenant: TestTenant;
beforeAll(async () => {
  redis = await startRedis();
  world = await startWorld({ ...FREE, REDIS_URL: redis.url });
  other = await startWorld({ ...FREE, REDIS_URL: redis.url }, { beside: world });
  tenant = await world.tenant();
});
afterAll(async () => {
  await other.close();
  await world.close();
  await redis.close();
});

let last = Date.now();
const moment = (): Date => {
  last = Math.max(last + 1, Date.now());
  return new Date(last);
};
type SignatureVersion = 1 | 2;
const headersOf = (identity: AgentIdentity, version: SignatureVersion, target: string): Record<string, string> =>
  version === 1 ? signedHeaders(identity, "", moment()) : signedHeadersV2(identity, { method: "GET", target, body: "" }, moment());
const fixed = (headers: Record<string, string>): Caller => ({ kind: "agent", headers: () => headers });
const ask = (at: World, { identity }: Pick<Device, "identity">, version: SignatureVersion): Promise<Answer> =>
  at.call(fixed(headersOf(identity, version, ME)), "GET", ME);
const verdict = ({ status, body }: Answer) => (status < 300 ? status : [status, body.code, body.error.details]);

/** Connects and returns the outcome: refused at the upgrade, closed, or ready. */
const connect = (
  at: World,
  { identity }: Pick<Device, "identity">,
  { version, capabilities }: { version: SignatureVersion; capabilities: readonly string[] },
) =>
  new Promise<{ refused?: unknown; versions?: string | undefined; ready?: true; close?: number; end(): Promise<void> }>((resolve, reject) => {
    const socket = new WebSocket(`${at.url.replace("http", "ws")}${CONNECT}`, "mooring-agent.v1", { headers: headersOf(identity, version, CONNECT) });
    const end = () =>
      new Promise<void>((done) => {
        if (socket.readyState === WebSocket.CLOSED) return done();
        socket.once("close", () => done());
        socket.close(1000);
      });
    socket.on("unexpected-response", (_, response) => {
      let text = "";
      response.on("data", (part) => {
        text += part;
      });
      response.on("end", () => {
        const { code, error } = JSON.parse(text);
        const versions = response.headers["x-svc-sig-versions"];
        resolve({ refused: [response.statusCode, code, error.details], versions: versions === undefined ? undefined : String(versions), end });
      });
    });
    socket.on("message", (data) => {
      const { op, data: body } = JSON.parse(String(data));
      if (op === "ready") resolve({ ready: true, end });
      if (op !== "welcome") return;
      const timestamp = moment().toISOString();
      socket.send(
        JSON.stringify({ op: "hello", id: "1", data: { proof: { timestamp, signature: sign(identity.secret, body.nonce, timestamp) }, capabilities } }),
      );
    });
    socket.on("close", (close) => resolve({ close, end }));
    socket.on("error", reject);
  });
const lock = async (device: Device): Promise<void> => {
  const session = await connect(world, device, { version: 2, capabilities: ["signature.v2"] });
  expect(session.ready).toBe(true);
  await session.end();
};
const events = async ({ deviceId }: Device) =>
  (
    await world.sql.query("select data from outbox_events where subject_id = $1 and type = 'device.signature_version_changed' order by position", [deviceId])
  ).rows.map(({ data }) => [data.minSignatureVersion, data.actor]);

test("one v2 session that announces v2 locks the agent: this node refuses v1 at once over REST, tRPC and at the upgrade, and accepts v2", async () => {
  const device = await tenant.device();
  expect((await ask(world, device, 1)).status).toBe(200);
  await lock(device);
  expect(verdict(await ask(world, device, 1))).toEqual(REFUSED);
  const trpc = await world.call(fixed(headersOf(device.identity, 1, ME)), "GET", "/trpc/agent.me");
  expect([trpc.status, trpc.body.error.data.app.details, trpc.headers.get("x-svc-sig-versions")]).toEqual([401, REFUSED[2], "1,2"]);
  const upgrade = await connect(world, device, { version: 1, capabilities: [] });
  expect([upgrade.refused, upgrade.versions]).toEqual([REFUSED, "1,2"]);
  expect((await ask(world, device, 2)).status).toBe(200);
  expect(await events(device)).toEqual([[2, device.identity.agentId]]);
});

test("a captured v2 request without its v2 headers is refused as v1", async () => {
  const device = await tenant.device();
  await lock(device);
  const stripped = Object.fromEntries(Object.entries(headersOf(device.identity, 2, ME)).filter(([name]) => !Object.values<string>(HEADERS_V2).includes(name)));
  expect(verdict(await world.call(fixed(stripped), "GET", ME))).toEqual(REFUSED);
});

test("a wrong v1 signature does not reveal the lock", async () => {
  const device = await tenant.device();
  await lock(device);
  expect(verdict(await ask(world, { identity: { ...device.identity, secret: "guessed" } }, 1))).toEqual([
    401,
    "INVALID_SIGNATURE",
    { reason: "bad_signature" },
  ]);
});

test.each([
  ["an agent that signs with v2 but does not announce it", 2, ["journal.v1"]],
  ["an agent that announces v2 but signs with v1", 1, ["signature.v2"]],
] as const)("%s is not locked", async (_, version, capabilities) => {
  const device = await tenant.device();
  const session = await connect(world, device, { version, capabilities });
  expect(session.ready).toBe(true);
  await session.end();
  expect((await ask(world, device, 1)).status).toBe(200);
  expect(await events(device)).toEqual([]);
});

test("a hello with a wrong proof locks nothing", async () => {
  const device = await tenant.device();
  const headers = headersOf(device.identity, 2, CONNECT);
  const socket = new WebSocket(`${world.url.replace("http", "ws")}${CONNECT}`, "mooring-agent.v1", { headers });
  const code = await new Promise<number>((resolve, reject) => {
    socket.on("message", () =>
      socket.send(
        JSON.stringify({
          op: "hello",
          id: "1",
          data: { proof: { timestamp: moment().toISOString(), signature: "0".repeat(64) }, capabilities: ["signature.v2"] },
        }),
      ),
    );
    socket.on("close", resolve);
    socket.on("error", reject);
  });
  expect(code).toBe(CLOSE.authFailed.code);
  expect((await ask(world, device, 1)).status).toBe(200);
});

test("another node that remembers the agent unlocked refuses v1 once the invalidation arrives", async () => {
  const device = await tenant.device();
  expect((await ask(other, device, 1)).status).toBe(200);
  await lock(device);
  await eventually(async () => expect(verdict(await ask(other, device, 1))).toEqual(REFUSED));
});

test("the lock survives a fresh process and an emptied Redis", async () => {
  const device = await tenant.device();
  await lock(device);
  await redis.ask("FLUSHALL");
  expect(verdict(await ask(world, device, 1))).toEqual(REFUSED);
  const fresh = await startWorld(FREE, { beside: world });
  try {
    expect(verdict(await ask(fresh, device, 1))).toEqual(REFUSED);
    expect((await connect(fresh, device, { version: 1, capabilities: [] })).refused).toEqual(REFUSED);
    expect((await ask(fresh, device, 2)).status).toBe(200);
  } finally {
    await fresh.close();
  }
});

test("only owner and admin can lift the lock; the event names the actor, and the next v2 hello locks again", async () => {
  const device = await tenant.device();
  await lock(device);
  const path = `/v1/devices/${device.deviceId}/signature-lock`;
  expect((await world.call(await tenant.user("operator"), "DELETE", path)).status).toBe(403);
  expect((await world.call(fixed(signedHeadersV2(device.identity, { method: "DELETE", target: path, body: "" }, moment())), "DELETE", path)).status).toBe(403);
  expect(verdict(await ask(world, device, 1))).toEqual(REFUSED);
  for (const role of ["owner", "admin"] as const) {
    expect((await world.call(await tenant.user(role), "DELETE", path)).status).toBe(204);
    expect((await ask(world, device, 1)).status).toBe(200);
    // Lifting an absent lock is no change.
    expect((await world.call(await tenant.user(role), "DELETE", path)).status).toBe(204);
    await lock(device);
    expect(verdict(await ask(world, device, 1))).toEqual(REFUSED);
  }
  const byAgent = [2, device.identity.agentId];
  expect(await events(device)).toEqual([byAgent, [1, `user:${tenant.ownerId}`], byAgent, [1, expect.stringMatching(/^user:admin-/)], byAgent]);
});

test("a user who revokes the secret lifts the lock, an agent that revokes its own keeps it", async () => {
  const device = await tenant.device();
  await lock(device);
  const path = `/v1/devices/${device.deviceId}/secrets/rotate`;
  const body = JSON.stringify({ revoke: true });
  const own = await world.call(fixed(signedHeadersV2(device.identity, { method: "POST", target: path, body }, moment())), "POST", path, { rawBody: body });
  const renewed = { identity: { ...device.identity, secret: own.body.sharedSecret as string } };
  expect(verdict(await ask(world, renewed, 1))).toEqual(REFUSED);
  expect((await world.call(await tenant.user("owner"), "POST", path, { rawBody: body })).status).toBe(200);
  expect(await events(device)).toEqual([
    [2, device.identity.agentId],
    [1, `user:${tenant.ownerId}`],
  ]);
});

test("provisioning the machine again lifts the lock", async () => {
  const device = await tenant.device();
  await lock(device);
  const again = await world.call(tenant.apiKey, "POST", "/v1/devices/provision", { body: { fingerprints: [device.fingerprint], replaceExisting: true } });
  const renewed = { identity: { ...device.identity, secret: again.body.data[0].shared_secret as string } };
  expect((await ask(world, renewed, 1)).status).toBe(200);
  expect(await events(device)).toEqual([
    [2, device.identity.agentId],
    [1, "pairing"],
  ]);
});
