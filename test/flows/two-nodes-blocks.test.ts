// Two gateways on one database: whom one of them blocks, both refuse within two seconds on all four ways in, and serve again as fast. With Redis and without.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { attempt, online } from "../channel/harness.ts";
import { eventually } from "../kit/eventually.ts";
import { asKey, type Caller, type Device, startWorld, type TestTenant, type World } from "../kit/world.ts";

const WITHIN_MS = 2_000;
const VICTIM = "203.0.113.77";

describe.each([
  ["with Redis", () => ({ REDIS_URL: inject("redisUrl") })],
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
    const settings = { TRUSTED_PROXIES: "127.0.0.0/8", RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off", RATE_LIMIT_AGENT: "off", ...env() };
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
  const watch = async (world: World, as: Caller) => {
    const stream = await fetch(`${world.url}/trpc/live.watch?input={}`, { headers: { accept: "text/event-stream", ...as.headers(""), ...victim.headers } });
    if (stream.status !== 200) return { code: ((await stream.json()) as { error: { data: { code: string } } }).error.data.code };
    return { code: "served", ended: stream.text().then(() => performance.now()), cancel: () => undefined };
  };
  const reach = ({ url }: World) => ({ url: url.replace(/^http/, "ws"), clock: { now: () => new Date() } });

  /** What a caller at the victim's address meets on the ways in that it can take. */
  const ways = {
    rest: async (world: World, as: Caller) => codeOf(await world.call(as, "GET", as === device.as ? "/v1/agent/me" : "/v1/devices", victim)),
    poll: async (world: World) => codeOf(await world.call(device.as, "GET", `/v1/commands/pending?deviceId=${device.deviceId}`, victim)),
    trpc: async (world: World, as: Caller) => {
      const { status, body } = await world.call(as, "GET", `/trpc/devices.list?input=${encodeURIComponent("{}")}`, victim);
      return status === 200 ? "served" : body.error.data.code;
    },
    stream: async (world: World, as: Caller) => (await watch(world, as)).code,
    socket: async (world: World) => {
      const made = await attempt(reach(world), device, victim);
      if (!("close" in made)) return (made as { body: { code: string } }).body.code;
      made.close();
      return "served";
    },
  };
  type Block = { readonly entityType: string; readonly entityValue: string };
  const blockBy = async (as: Caller, path: string, body: Block): Promise<{ readonly at: number; readonly unblock: () => Promise<number> }> => {
    const { status, body: answer } = await nodes[0].call(as, "POST", path, { body });
    expect(status).toBe(201);
    const unblock = async () => {
      expect((await nodes[0].call(as, "DELETE", `${path}/${answer.data.id}`)).status).toBe(204);
      return performance.now();
    };
    return { at: performance.now(), unblock };
  };
  const expectSoon = async (since: number, look: () => Promise<string>, wanted: string) => {
    await eventually(async () => expect(await look()).toBe(wanted), WITHIN_MS + 1_000);
    expect(performance.now() - since).toBeLessThan(WITHIN_MS);
  };

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
      "/v1/security/blocked-entities",
      () => ({ entityType: "ip", entityValue: "::ffff:203.0.113.0/120" }),
      () => [(world) => ways.rest(world, member), (world) => ways.trpc(world, member), (world) => ways.stream(world, member), ways.socket, ways.poll],
    ],
    [
      "a user",
      () => owner,
      "/v1/security/blocked-entities",
      () => ({ entityType: "user", entityValue: tenant.ownerId.replace("owner", "operator") }),
      () => [(world) => ways.rest(world, member), (world) => ways.trpc(world, member), (world) => ways.stream(world, member)],
    ],
    [
      "a key",
      () => owner,
      "/v1/security/blocked-entities",
      () => ({ entityType: "key", entityValue: key.keyId }),
      () => [(world) => ways.rest(world, key.as), (world) => ways.trpc(world, key.as), (world) => ways.stream(world, key.as)],
    ],
    [
      "a device",
      () => owner,
      "/v1/security/blocked-entities",
      () => ({ entityType: "device", entityValue: device.deviceId }),
      () => [(world) => ways.rest(world, device.as), ways.poll, ways.socket],
    ],
  ])(
    "%s is refused on both nodes on every way in within two seconds, and served as fast",
    async (_name, as, path, body, looks) => {
      const all = nodes.flatMap((world) => looks().map((look) => () => look(world)));
      for (const look of all) expect(await look()).toBe("served");
      const { at, unblock } = await blockBy(as(), path, body());
      await Promise.all(all.map((look) => expectSoon(at, look, "ENTITY_BLOCKED")));
      const unblockedAt = await unblock();
      await Promise.all(all.map((look) => expectSoon(unblockedAt, look, "served")));
    },
    60_000,
  );

  test("streams and sockets that are open on both nodes end within two seconds", async () => {
    const devices = [await tenant.device(), await tenant.device()];
    const streams = await Promise.all(nodes.map((world) => watch(world, member)));
    const sockets = await Promise.all(nodes.map(async (world, n) => ({ socket: await online(reach(world), devices[n] as Device), n })));
    const blocks = [
      await blockBy(owner, "/v1/security/blocked-entities", { entityType: "user", entityValue: tenant.ownerId.replace("owner", "operator") }),
      ...(await Promise.all(devices.map(({ deviceId }) => blockBy(owner, "/v1/security/blocked-entities", { entityType: "device", entityValue: deviceId })))),
    ];
    const at = blocks.at(-1)?.at ?? 0;
    for (const { ended } of streams) expect(((await ended) ?? Infinity) - at).toBeLessThan(WITHIN_MS);
    for (const { socket } of sockets) expect((await socket.closed()).code).toBe(4500);
    expect(performance.now() - at).toBeLessThan(WITHIN_MS);
    for (const { unblock } of blocks) await unblock();
  }, 30_000);
});
