// An agent knows the gateway's answers by their header and their JSON, so every answer to it carries both: of every operation of agents, and of every kind of failure.
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { contract, type Operation } from "../../protocol/index.ts";
import { anonymous, asAgent, type Caller, type Device, startWorld, type World } from "../kit/gateway/world.ts";
import { rawCall } from "./raw.ts";

const HEADER = "x-svc-sig-versions";

let world: World;
let device: Device;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_FAILED_AUTH: "off", RATE_LIMIT_PAIRING: "off", RATE_LIMIT_AGENT: "off" });
  device = await (await world.tenant()).device();
});
afterAll(() => world.close());

/** What a device calls: everything signed, and pairing, which needs no signature. */
const operations: readonly (readonly [string, Operation])[] = Object.entries(contract).flatMap(([group, { operations: ops }]) =>
  Object.entries(ops as Readonly<Record<string, Operation>>)
    .filter(([, { auth, rest }]) => rest.length > 0 && (auth.includes("agent") || (group === "pairing" && auth.includes("public"))))
    .map(([name, op]) => [`${group}.${name}`, op] as const),
);

const targetOf = ({ rest }: Operation, given: Readonly<Record<string, string>>): readonly [string, string] => {
  const [method = "", path = ""] = (rest[0] ?? "").split(" ");
  return [method, `/v1${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => given[name] ?? "x")}`];
};

/** What an agent checks. A downloaded file is no JSON, 304 has no body, and OpenTelemetry has a form of its own. */
const expectOwn = async (response: Response, what: string, isOtlp = false): Promise<number> => {
  expect(response.headers.get(HEADER), what).toBe("1,2");
  const text = await response.text();
  const isFile = response.ok && response.headers.get("content-type") !== "application/json; charset=utf-8";
  if (!isFile && !(isOtlp && response.ok) && response.status !== 304) expect(JSON.parse(text), what).toMatchObject({ success: response.ok });
  return response.status;
};
const send = (as: Caller, method: string, path: string, body = "", headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
  fetch(`${world.url}${path}`, { method, headers: { ...as.headers(body), ...headers }, ...(body === "" ? {} : { body }), redirect: "manual" });

test("the contract has operations of agents and of pairing", () => {
  expect(operations.map(([id]) => id)).toEqual(
    expect.arrayContaining(["agent.me", "commands.poll", "commands.ack", "pairing.initiate", "agent.updatePackage"]),
  );
});

test.each(operations)("%s: whatever comes of the call, the answer is known as the gateway's", async (id, op) => {
  const [method, path] = targetOf(op, { deviceId: device.deviceId });
  const hasBody = method !== "GET" && method !== "DELETE";
  const forged: Caller = asAgent({ ...device.identity, secret: "another" });
  const kinds: readonly (readonly [string, Promise<Response>])[] = [
    ["signed, and empty", send(device.as, method, path)],
    ["not JSON", send(device.as, method, path, hasBody ? "{" : "")],
    ["without a signature", send(anonymous, method, path, hasBody ? "{}" : "")],
    ["a wrong signature", send(forged, method, path)],
    ["half a signature", send(anonymous, method, path, "", { "x-svc-agent-id": "agt_x" })],
    ["two credentials", send(device.as, method, path, "", { "x-api-key": "k" })],
    ["an unknown field", send(device.as, method, `${path}?never=1`)],
    ["another's device", send(device.as, ...targetOf(op, { deviceId: "dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R" }))],
    ["another method", send(device.as, "PATCH", path, "{}")],
    ["the older prefix", send(device.as, method, `/api${path}`)],
  ];
  const statuses = await Promise.all(kinds.map(async ([kind, response]) => expectOwn(await response, `${id}: ${kind}`, op.otlp === true)));
  expect(statuses.filter((status) => status >= 500)).toEqual([]);
  if (hasBody) await expectOwn(await send(device.as, method, path, `"${"x".repeat(op.maxBodyBytes + 1)}"`), `${id}: too large`);
});

test("a download, an unchanged record and a head without a body carry the header", async () => {
  const config = await send(device.as, "GET", "/v1/agent/desired-state");
  const tag = config.headers.get("etag") ?? "";
  expect(await expectOwn(config, "desired state")).toBe(200);
  expect(await expectOwn(await send(device.as, "GET", "/v1/agent/desired-state", "", { "if-none-match": tag }), "unchanged")).toBe(304);
  expect((await send(device.as, "HEAD", "/v1/agent/me")).headers.get(HEADER)).toBe("1,2");
});

test("an unknown path, a path that is too long, and a connection that is no WebSocket are answered so that an agent believes it", async () => {
  const statuses = [
    await expectOwn(await send(device.as, "GET", "/v1/agent/nothing"), "no such path"),
    await expectOwn(await send(device.as, "GET", "/nowhere"), "no such tree"),
    await expectOwn(await send(device.as, "GET", `/v1/agent/me?x=${"x".repeat(9_000)}`), "too long"),
    await expectOwn(await send(device.as, "GET", "/v1/agent/connect"), "no upgrade"),
  ];
  expect(statuses).toEqual([404, 404, 414, 426]);
});

test("a limit and a database that does not answer in time are answered so that an agent believes it", async () => {
  const limited = await startWorld({ RATE_LIMIT_AGENT: "1" }, { beside: world });
  const holder = await world.sql.connect();
  try {
    const { as } = await (await world.tenant({ unlimited: false })).device();
    const ask = (): Promise<Response> => fetch(`${limited.url}/v1/agent/me`, { headers: as.headers("") });
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => expectOwn(await ask(), "limit")));
    expect(statuses).toContain(429);
    await holder.query("begin");
    await holder.query("lock table apps in access exclusive mode");
    expect(await expectOwn(await send(device.as, "GET", "/v1/agent/desired-state"), "database")).toBe(503);
  } finally {
    await holder.query("rollback");
    holder.release();
    await limited.close();
  }
});

test.each<readonly [number, string, Record<string, string>]>([
  [401, "a wrong signature", { "x-svc-signature": "0".repeat(64) }],
  [400, "a repeated credential", { "x-api-key": "k" }],
  [426, "an unknown protocol", { "sec-websocket-protocol": "mooring-agent.v9" }],
])("an upgrade that is refused with %i (%s) is answered so that an agent believes it", async (status, _, headers) => {
  const response = await new Promise<{ status: number; versions: unknown; body: unknown }>((resolve, reject) => {
    const socket = new WebSocket(`${world.url.replace("http", "ws")}/v1/agent/connect`, { headers: { ...device.as.headers(""), ...headers } });
    socket.on("open", () => reject(new Error("the upgrade was accepted")));
    socket.on("error", reject);
    socket.on("unexpected-response", (_request, answer) => {
      let text = "";
      answer.on("data", (chunk) => {
        text += String(chunk);
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, versions: answer.headers[HEADER], body: JSON.parse(text) }));
    });
  });
  expect(response).toMatchObject({ status, versions: "1,2", body: { success: false } });
});

test("the parser's own error pages are no answer to an agent: they settle and stop nothing", async () => {
  const { text } = await rawCall(world.url, ["GET /v1/agent/me HTTP/1.0\r\nHost: gateway\r\n\r\n"], { untilClose: true });
  expect(text).toMatch(/^HTTP\/1\.1 505 /);
  expect(text.toLowerCase()).not.toContain(HEADER);
});
