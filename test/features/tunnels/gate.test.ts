// Who may visit a tunnel, and whose connectors may serve it, as functions: the block list counts for visitors, and a token that was replaced opens nothing.
import { once } from "node:events";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connectToService, isAllowedService, readAllowed } from "../../../agent-sim/host/services.ts";
import { systemClock } from "../../../server/core/clock.ts";
import type { EdgeRequest } from "../../../server/core/ports/edge.ts";
import { createConnectors } from "../../../server/features/tunnels/connectors.ts";
import type { TunnelRow } from "../../../server/features/tunnels/store.ts";
import { cookieName, createGate, hashOf } from "../../../server/features/tunnels/visits/gate.ts";
import { createPasses } from "../../../server/features/tunnels/visits/passes.ts";

const passes = createPasses({ secretBox: { deriveAll: () => [Buffer.alloc(32, "k")] }, clock: systemClock });
const blocked = { addresses: new Set<string>(), users: new Set<string>(), tenantAddresses: new Set<string>() };
const used = new Set<string>();
const gate = createGate({
  clock: systemClock,
  passes,
  useCode: async (code) => used.size < used.add(code).size,
  call: async () => {
    throw new Error("nobody comes with a key");
  },
  publicUrl: () => "https://mooring.example",
  isMember: async () => true,
  blocks: () => ({
    any: true,
    refusesAddress: (ip) => blocked.addresses.has(ip),
    refuses: ({ ip, principal, tenantId }) => tenantId === "ten_1" && (blocked.tenantAddresses.has(ip) || blocked.users.has(principal.userId ?? "")),
  }),
});
const tunnel = (more: Partial<TunnelRow>): TunnelRow =>
  ({
    tunnelId: "tun_1",
    tenantId: "ten_1",
    status: "active",
    allow: [],
    accessMode: "public",
    expiresAt: null,
    tokenHash: hashOf("mtt_old"),
    ...more,
  }) as TunnelRow; // as: what the gate reads
const visit = (ip: string, cookie?: string): EdgeRequest =>
  ({ method: "GET", path: "/", query: "", secure: false, ip, message: { headers: cookie === undefined ? {} : { cookie } } }) as unknown as EdgeRequest; // as: what the gate reads
const codeOf = async (asked: ReturnType<typeof gate>): Promise<string> => {
  const entrance = await asked;
  return entrance.kind === "refused" ? entrance.error.code : entrance.kind;
};

test("an address that the installation or the tenant blocks may not come, even to a public tunnel", async () => {
  blocked.addresses.add("192.0.2.1");
  blocked.tenantAddresses.add("192.0.2.2");
  expect(await codeOf(gate(tunnel({}), visit("192.0.2.3")))).toBe("in");
  expect(await codeOf(gate(tunnel({}), visit("192.0.2.1")))).toBe("ENTITY_BLOCKED");
  expect(await codeOf(gate(tunnel({}), visit("192.0.2.2")))).toBe("ENTITY_BLOCKED");
  expect(await codeOf(gate(tunnel({ tenantId: "ten_2" }), visit("192.0.2.2")))).toBe("in");
});

test("a member who is blocked is out with the next request", async () => {
  const cookie = `${cookieName(false)}=${passes.cookie("tun_1", { userId: "usr_1" })}`;
  const own = tunnel({ accessMode: "private" });
  expect(await codeOf(gate(own, visit("192.0.2.3", cookie)))).toBe("in");
  blocked.users.add("usr_1");
  expect(await codeOf(gate(own, visit("192.0.2.3", cookie)))).toBe("UNAUTHORIZED");
});

test("a code of the sign-in lets one visitor in, once, and two codes of one moment are two", async () => {
  const [code, other] = [passes.code("tun_1", { userId: "usr_9" }), passes.code("tun_1", { userId: "usr_9" })];
  const enter = (given: string) => gate(tunnel({ accessMode: "private" }), { ...visit("192.0.2.3"), path: "/.mooring/enter", query: `code=${given}&path=/a` });
  expect(await enter(code)).toMatchObject({ kind: "sent", location: "/a" });
  expect(await codeOf(enter(code))).toBe("UNAUTHORIZED");
  expect(await codeOf(enter(other))).toBe("sent");
});

test("a rotation, a stop or a deletion on another node ends the connectors of this one", async () => {
  let row: TunnelRow | null = tunnel({});
  const open = new Set<string>();
  const errors: unknown[] = [];
  const facts = { carrierId: "ses_1", tenantId: "ten_1", kind: "raw" as const, clientVersion: null, openedAt: new Date() };
  const connectors = createConnectors({
    carriers: () => ({ all: () => [...open].map((key) => ({ ...facts, key })), end: (key) => void open.delete(key) }),
    byToken: async (hash) => (row?.tokenHash === hash ? row : null),
    byId: async () => row,
    onError: (error) => errors.push(error),
  });
  const admit = async (token: string): Promise<boolean> => {
    const owner = await connectors.admit(token);
    if (owner !== null) open.add(owner.key);
    return owner !== null;
  };
  const after = async (next: TunnelRow | null): Promise<boolean> => {
    row = next;
    connectors.recheck(["ten_2"]);
    connectors.recheck(["ten_1"]);
    await new Promise(setImmediate);
    return open.has("tun_1");
  };
  expect(await admit("mtt_old")).toBe(true);
  expect(await after(tunnel({ name: "renamed" }))).toBe(true);
  expect(await after(tunnel({ tokenHash: hashOf("mtt_new") }))).toBe(false);
  expect(await admit("mtt_old")).toBe(false);
  expect(await admit("mtt_new")).toBe(true);
  expect(await after(tunnel({ tokenHash: hashOf("mtt_new"), status: "stopped" }))).toBe(false);
  expect(await admit("mtt_new")).toBe(false);
  row = tunnel({});
  expect(await admit("mtt_old")).toBe(true);
  // The hint may be late: a connector with the next token puts out those with the last.
  row = tunnel({ tokenHash: hashOf("mtt_new") });
  const ended = open.size;
  await connectors.admit("mtt_new");
  expect([ended, open.size]).toEqual([1, 0]);
  open.add("tun_1");
  expect(await after(null)).toBe(false);
  expect(errors).toEqual([]);
});

test("of unix sockets a device connects to those that lie in its own folder, and a link out of it leads nowhere", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mooring-sockets-"));
  const outside = await mkdtemp(join(tmpdir(), "mooring-outside-"));
  const servers = [join(folder, "sockets", "shop.sock"), join(folder, "control.sock"), join(outside, "docker.sock")].map((path) => ({
    path,
    server: createServer(),
  }));
  await mkdir(join(folder, "sockets"));
  for (const { path, server } of servers) await once(server.listen(path), "listening");
  await symlink(join(outside, "docker.sock"), join(folder, "sockets", "linked.sock"));
  await symlink(outside, join(folder, "sockets", "away"));
  await symlink(folder, join(folder, "sockets", "up"));
  const reach = async (service: string): Promise<string> => {
    const socket = connectToService(service, { folder });
    if (typeof socket === "string") return socket;
    await once(socket, "connect");
    socket.destroy();
    return "reached";
  };
  expect(await reach("unix:sockets/shop.sock")).toBe("reached");
  for (const name of ["linked.sock", "away/docker.sock", "up/control.sock", "nothing.sock"])
    expect([name, await reach(`unix:sockets/${name}`)]).toEqual([name, "unreachable"]);
  for (const service of ["unix:control.sock", "unix:sockets/../control.sock", "unix:/var/run/docker.sock", "unix:sockets/a%2e%2e/x", "unix:sockets"])
    expect([service, await reach(service)]).toEqual([service, "not_allowed"]);
  expect(connectToService("unix:sockets/shop.sock")).toBe("not_allowed");
  for (const { server } of servers) server.close();
  await Promise.all([folder, outside].map((each) => rm(each, { recursive: true, force: true })));
});

test("a device connects to itself, and of its network only to what its own file names and what is private", () => {
  const allowed = readAllowed("# the plant\n192.168.7.0/24\n10.1.2.3 # the printer\n0.0.0.0/0.5\nnonsense\n203.0.113.0/24\n169.254.0.0/16\nfd00:7::/64\n");
  const may = (service: string): boolean => isAllowedService(service, allowed);
  const services = ["127.0.0.9", "[::1]", "localhost", "192.168.7.200", "10.1.2.3", "[fd00:7::1]"];
  expect(services.map((host) => may(`http://${host}:80`))).toEqual(services.map(() => true));
  const others = ["192.168.8.1", "10.1.2.4", "203.0.113.7", "169.254.169.254", "[fd00:8::1]", "printer.example"];
  expect(others.map((host) => may(`http://${host}:80`))).toEqual(others.map(() => false));
  const everything = readAllowed("0.0.0.0/0");
  expect(["8.8.8.8", "169.254.169.254", "172.16.0.1"].map((host) => isAllowedService(`http://${host}`, everything))).toEqual([false, false, true]);
  expect([isAllowedService("http://192.168.7.200"), may("ftp://192.168.7.200"), may("nothing")]).toEqual([false, false, false]);
});
