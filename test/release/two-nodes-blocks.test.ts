// Two gateways on one database: whom one of them blocks, both refuse within two seconds on all four ways in, and serve again as fast. With Redis and without.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withTimeout } from "../../server/platform/timeout.ts";
import { attempt, online } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { asKey, type Caller, type Device, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { openStream } from "../kit/net/event-stream.ts";
import { startRedis } from "../kit/stores/redis.ts";

/** Two seconds, and what a busy machine adds. */
const WITHIN_MS = 3_000;
const OWN = "/v1/security/blocked-entities";
const VICTIM = "203.0.113.77";

let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

describe.each([
  ["with Redis", () => ({ REDIS_URL: redis.url })],
  ["without Redis", () => ({})],
])("%s", (_, env) => {
  let nodes: readonly [World, World];
  let tenant: TestTenant;
  let owner: Caller;
  let operator: Caller;
  let member: Caller;
  let device: Device;
  let key: { readonly keyId: string; readonly as: Caller };
  beforeAll(async () => {
    const settings = {
      TRUSTED_PROXIES: "127.0.0.0/8",
      RATE_LIMIT_STANDARD: "off",
      RATE_LIMIT_TENANT: "off",
      RATE_LIMIT_AGENT: "off",
      RATE_LIMIT_CONNECT: "off",
      RATE_LIMIT_READS: "off",
      ...env(),
    };
    const first = await startWorld({ NODE_ID: "node-a", ...settings });
    nodes = [first, await startWorld({ NODE_ID: "node-b", ...settings }, { beside: first })];
    tenant = await first.tenant();
    [owner, operator, member] = [await tenant.user("owner"), await first.operator(), await tenant.user("operator")];
    device = await tenant.device();
    const made = (await first.call(owner, "POST", "/v1/api-keys", { body: { name: "k" } })).body.data;
    key = { keyId: made.keyId, as: asKey(made.apiKey, tenant.tenantId) };
  });
  afterAll(async () => {
    for (const node of [...nodes].reverse()) await node.close();
  });

  const victim = { headers: { "x-forwarded-for": VICTIM } };
  const codeOf = ({ status, body }: { status: number; body: { code?: string } | null }): string => (status < 300 ? "served" : (body?.code ?? String(status)));
  /** An address that the installation blocks gets REST's answer wherever it calls. */
  const refusalOf = ({ code, error }: { readonly code?: string; readonly error?: { readonly data?: { readonly app: { readonly code: string } } } }): string =>
    code ?? error?.data?.app.code ?? "no code";
  const watch = (world: World, as: Caller) => openStream(world.url, { headers: { ...as.headers(""), ...victim.headers } });
  const reach = ({ url }: World) => ({ url: url.replace(/^http/, "ws"), clock: { now: () => new Date() } });

  /** What a caller at the victim's address meets on the ways in that it can take. */
  const ways = {
    rest: async (world: World, as: Caller) => codeOf(await world.call(as, "GET", as === device.as ? "/v1/agent/me" : "/v1/devices", victim)),
    poll: async (world: World) => codeOf(await world.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands`, victim)),
    trpc: async (world: World, as: Caller) => {
      const { status, body } = await world.call(as, "GET", `/trpc/devices.list?input=${encodeURIComponent("{}")}`, victim);
      return status === 200 ? "served" : refusalOf(body);
    },
    stream: async (world: World, as: Caller) => {
      try {
        (await watch(world, as)).close();
        return "served";
      } catch (error) {
        return /ENTITY_BLOCKED|answers 403/.test(String(error)) ? "ENTITY_BLOCKED" : String(error);
      }
    },
    socket: async (world: World) => {
      const made = await attempt(reach(world), device, victim);
      if ("status" in made) return (made.body as { code: string }).code;
      made.end();
      return "served";
    },
  };
  type Block = { readonly entityType: string; readonly entityValue: string };
  const blockBy = async (as: Caller, path: string, body: Block): Promise<{ readonly unblock: () => Promise<void> }> => {
    const { status, body: answer } = await nodes[0].call(as, "POST", path, { body });
    expect(status).toBe(201);
    const unblock = async () => {
      expect((await nodes[0].call(as, "DELETE", `${path}/${answer.data.id}`)).status).toBe(204);
    };
    return { unblock };
  };
  const expectSoon = (look: () => Promise<string>, wanted: string) => eventually(async () => expect(await look()).toBe(wanted), WITHIN_MS);

  test.each<[string, () => Caller, string, () => Block, () => readonly ((world: World) => Promise<string>)[]]>([
    [
      "an address, for the installation",
      () => operator,
      "/v1/admin/security/blocked-entities",
      () => ({ entityType: "ip", entityValue: VICTIM }),
      () => [(world) => ways.rest(world, member), (world) => ways.trpc(world, member), (world) => ways.stream(world, member), ways.socket, ways.poll],
    ],
    [
      "a network, for a tenant",
      () => owner,
      OWN,
      () => ({ entityType: "ip", entityValue: "::ffff:203.0.113.0/120" }),
      () => [(world) => ways.rest(world, member), (world) => ways.trpc(world, member), (world) => ways.stream(world, member), ways.socket, ways.poll],
    ],
    [
      "a user",
      () => owner,
      OWN,
      () => ({ entityType: "user", entityValue: tenant.ownerId.replace("owner", "operator") }),
      () => [(world) => ways.rest(world, member), (world) => ways.trpc(world, member), (world) => ways.stream(world, member)],
    ],
    [
      "a key",
      () => owner,
      OWN,
      () => ({ entityType: "key", entityValue: key.keyId }),
      () => [(world) => ways.rest(world, key.as), (world) => ways.trpc(world, key.as), (world) => ways.stream(world, key.as)],
    ],
    [
      "a device",
      () => owner,
      OWN,
      () => ({ entityType: "device", entityValue: device.deviceId }),
      () => [(world) => ways.rest(world, device.as), ways.poll, ways.socket],
    ],
  ])(
    "%s is refused on both nodes on every way in within two seconds, and served as fast",
    async (_name, as, path, body, looks) => {
      const all = nodes.flatMap((world) => looks().map((look) => () => look(world)));
      for (const look of all) expect(await look()).toBe("served");
      const { unblock } = await blockBy(as(), path, body());
      const refused = Promise.all(all.map((look) => expectSoon(look, "ENTITY_BLOCKED")));
      await refused.catch(unblock);
      await refused;
      await unblock();
      await Promise.all(all.map((look) => expectSoon(look, "served")));
    },
    60_000,
  );

  test("a poll that waits on either node ends within two seconds, refused", async () => {
    const devices = [await tenant.device(), await tenant.device()];
    const polls = nodes.map(async (world, n) => {
      const { deviceId, as } = devices[n] as Device;
      return codeOf(await world.call(as, "GET", `/v1/devices/${deviceId}/commands?wait=14`));
    });
    for (const { deviceId } of devices)
      await eventually(async () => expect((await nodes[0].call(owner, "GET", `/v1/devices/${deviceId}`)).body.data.lastSeen).toBeTruthy());
    const blocks = await Promise.all(devices.map(({ deviceId: entityValue }) => blockBy(owner, OWN, { entityType: "device", entityValue })));
    for (const poll of polls) expect(await withTimeout(poll, WITHIN_MS, "the poll did not end")).toBe("ENTITY_BLOCKED");
    for (const { unblock } of blocks) await unblock();
  }, 30_000);

  test("streams and sockets that are open on both nodes end within two seconds", async () => {
    const devices = [await tenant.device(), await tenant.device()];
    const streams = await Promise.all(nodes.map((world) => watch(world, member)));
    const sockets = await Promise.all(nodes.map(async (world, n) => ({ socket: await online(reach(world), devices[n] as Device), n })));
    const blocks = [
      await blockBy(owner, OWN, { entityType: "user", entityValue: tenant.ownerId.replace("owner", "operator") }),
      ...(await Promise.all(devices.map(({ deviceId }) => blockBy(owner, OWN, { entityType: "device", entityValue: deviceId })))),
    ];
    for (const { ended } of streams) expect(await withTimeout(ended, WITHIN_MS, "the stream did not end")).toContain("ENTITY_BLOCKED");
    for (const { socket } of sockets) expect((await withTimeout(socket.closed(), WITHIN_MS, "the socket did not close")).code).toBe(4500);
    for (const { unblock } of blocks) await unblock();
  }, 30_000);
});
