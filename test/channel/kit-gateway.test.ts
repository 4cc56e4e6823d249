// The gateway that the kit plays answers agents as the real one does: the same op, code, result and close code for the same stimulus.
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { KIT_SECRET, KIT_TOKEN, type KitGateway, openKitGateway } from "../../protocol/agent-kit/gateway/kit-gateway.ts";
import { kitTime } from "../../protocol/agent-kit/kit-time.ts";
import { type AgentIdentity, HEADERS, ServerFrame, SUBPROTOCOL, sign, signedHeaders } from "../../protocol/index.ts";
import { startWorld, type World } from "../kit/gateway/world.ts";

/** One of the two gateways, with an agent that it knows. */
interface Side {
  readonly url: string;
  readonly identity: AgentIdentity;
  readonly deviceId: string;
  readonly enrollmentToken: string;
  /** Queues a command and resolves to its id. */
  readonly queue: () => Promise<string>;
}

let world: World;
let kit: KitGateway;
let sides: Readonly<Record<"real" | "kit", Side>>;
const kitFrames: unknown[] = [];

beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_AGENT: "off", RATE_LIMIT_STANDARD: "off", RATE_LIMIT_CONNECT: "off", RATE_LIMIT_PAIRING: "off" });
  const tenant = await world.tenant();
  const device = await tenant.device();
  const { body } = await world.call(tenant.apiKey, "POST", "/v1/pairing/enrollment-tokens", { body: { name: "kit", maxUses: 5 } });
  kit = await openKitGateway({
    time: kitTime,
    trace: (what, data) => {
      if (/^gateway \d/.test(what) && typeof data === "string" && data.startsWith("{")) kitFrames.push(JSON.parse(data));
    },
  });
  const queue = async (): Promise<string> =>
    (await world.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/commands`, { body: { type: "ping" } })).body.data.commandId;
  sides = {
    real: { url: world.url, identity: device.identity, deviceId: device.deviceId, enrollmentToken: body.data.token, queue },
    kit: {
      url: kit.url,
      identity: { agentId: "agt_kit", tenantId: "ten_kit", secret: KIT_SECRET },
      deviceId: "dev_kit",
      enrollmentToken: KIT_TOKEN,
      queue: async () => kit.book.add("ping", {}).commandId,
    },
  };
});
afterAll(async () => {
  await kit.close();
  await world.close();
});

let lastMs = 0;
/** No two of a side's signatures have one timestamp. */
const now = (shiftMs = 0): Date => {
  lastMs = Math.max(Date.now(), lastMs + 1);
  return new Date(lastMs + shiftMs);
};
const headersOf = ({ identity }: Side, body = "", shiftMs = 0): Record<string, string> => signedHeaders(identity, body, now(shiftMs));

const call = async (side: Side, method: string, path: string, { body = "", headers = headersOf(side, body) } = {}): Promise<readonly unknown[]> => {
  const response = await fetch(side.url + path, { method, headers: { ...headers, "content-type": "application/json" }, ...(method === "GET" ? {} : { body }) });
  const answer = (await response.json()) as { success: boolean; code?: string; details?: { reason?: string }; data?: unknown };
  return [response.status, answer.success, answer.code ?? null, answer.details?.reason ?? null, response.headers.has("x-svc-sig-versions")];
};

interface Session {
  readonly socket: WebSocket;
  next(op: string): Promise<{ readonly op: string; readonly id: string; readonly ref?: string; readonly data: Record<string, unknown> }>;
  send(op: string, id: string, data: unknown): void;
}
const connect = async (side: Side, headers = headersOf(side)): Promise<Session | readonly unknown[]> => {
  const socket = new WebSocket(`${side.url.replace(/^http/, "ws")}/v1/agent/connect`, [SUBPROTOCOL], { headers, perMessageDeflate: false });
  const frames: Awaited<ReturnType<Session["next"]>>[] = [];
  let wake = (): void => undefined;
  socket.on("message", (bytes) => {
    frames.push(JSON.parse(bytes.toString()));
    wake();
  });
  socket.on("error", () => undefined);
  const refused = once(socket, "unexpected-response").then(async ([, response]) => {
    let text = "";
    for await (const part of response) text += String(part);
    const { success, code, details } = JSON.parse(text);
    return [response.statusCode, success, code, details?.reason ?? null];
  });
  const outcome = await Promise.race([once(socket, "open").then(() => null), refused]);
  if (outcome !== null) return outcome;
  const next: Session["next"] = async (op) => {
    for (;;) {
      const at = frames.findIndex((frame) => frame.op === op);
      if (at >= 0) return frames.splice(at, 1)[0] as (typeof frames)[number];
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  return { socket, next, send: (op, id, data) => socket.send(JSON.stringify({ op, id, data })) };
};
const online = async (side: Side, proofOf = (nonce: string, at: string) => sign(side.identity.secret, nonce, at), hello: object = {}): Promise<Session> => {
  const session = (await connect(side)) as Session;
  const { data } = await session.next("welcome");
  const timestamp = now().toISOString();
  session.send("hello", "1", {
    proof: { timestamp, signature: proofOf(String(data["nonce"]), timestamp) },
    capabilities: ["journal.v1"],
    maxInFlight: 1,
    ...hello,
  });
  return session;
};
const closing = async ({ socket }: Session): Promise<readonly unknown[]> => {
  const [code, reason] = await once(socket, "close");
  return [code, String(reason).replace(/;ra=.*/, "")];
};

/** Opens a session, lets the stimulus act, and closes it. */
const inSession =
  (act: (session: Session, side: Side) => Promise<readonly unknown[]>) =>
  async (side: Side): Promise<readonly unknown[]> => {
    const session = await online(side);
    const { ref } = await session.next("ready");
    const seen = await act(session, side);
    const closed = once(session.socket, "close");
    session.send("goodbye", "99", { reason: "shutdown" });
    session.socket.close(1000);
    await closed;
    return [ref, ...seen];
  };
const ackOf = async (session: Session, commandId: string, id: string, more: object): Promise<readonly unknown[]> => {
  session.send("ack", id, { commandId, ...more });
  const { ref, data } = await session.next("ack_ok");
  return [ref, data["commandId"] === commandId, data["result"], data["status"]];
};
const initiate = (side: Side, fingerprint: string) =>
  call(side, "POST", "/v1/pairing/initiate", { body: JSON.stringify({ device_fingerprint: fingerprint }), headers: {} });
const post = (path: string, body: object) => (side: Side) => call(side, "POST", path, { body: JSON.stringify(body), headers: {} });
const ackPath = ({ deviceId }: Side, commandId: string): string => `/v1/devices/${deviceId}/commands/${commandId}/ack`;

const STIMULI: Readonly<Record<string, (side: Side) => Promise<readonly unknown[]>>> = {
  "an upgrade without headers": async (side) => (await connect(side, {})) as readonly unknown[],
  "an upgrade with a wrong signature": async (side) => (await connect(side, { ...headersOf(side), [HEADERS.signature]: "0".repeat(64) })) as readonly unknown[],
  "an upgrade from ten minutes ago": async (side) => (await connect(side, headersOf(side, "", -600_000))) as readonly unknown[],
  "an upgrade from ten minutes ahead": async (side) => (await connect(side, headersOf(side, "", 600_000))) as readonly unknown[],
  "an upgrade with a timestamp of another form": async (side) => {
    const at = now().toUTCString();
    return (await connect(side, {
      ...headersOf(side),
      [HEADERS.timestamp]: at,
      [HEADERS.signature]: sign(side.identity.secret, "", at),
    })) as readonly unknown[];
  },
  "an upgrade of an unknown agent": async (side) => (await connect(side, { ...headersOf(side), [HEADERS.agentId]: "agt_nobody" })) as readonly unknown[],
  "a hello with a wrong proof": async (side) => closing(await online(side, () => "0".repeat(64))),
  "a good hello": inSession(async () => []),
  "a heartbeat": inSession(async (session) => {
    session.send("heartbeat", "2", { status: "online" });
    const { op, ref } = await session.next("heartbeat_ack");
    return [op, ref];
  }),
  "a command, and each ack of it": inSession(async (session, side) => {
    const commandId = await side.queue();
    kit.sessions.at(-1)?.push();
    const { data } = await session.next("command");
    const { command, delivery } = data as { command: Record<string, unknown>; delivery: Record<string, unknown> };
    return [
      [command["commandId"] === commandId, command["type"], command["requiresAck"], delivery["attempt"], delivery["redelivered"]],
      await ackOf(session, commandId, "3", { status: "running" }),
      await ackOf(session, commandId, "4", { status: "succeeded", output: { pong: true } }),
      await ackOf(session, commandId, "5", { status: "succeeded", output: { pong: true } }),
    ];
  }),
  "an ack of an unknown command": inSession((session) => ackOf(session, "cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", "3", { status: "failed" })),
  "GET /v1/agent/me": (side) => call(side, "GET", "/v1/agent/me"),
  "GET /v1/agent/me with a wrong signature": (side) =>
    call(side, "GET", "/v1/agent/me", { headers: { ...headersOf(side), [HEADERS.signature]: "0".repeat(64) } }),
  "GET /v1/agent/me without a signature": (side) => call(side, "GET", "/v1/agent/me", { headers: {} }),
  "GET /v1/agent/me from ten minutes ago": (side) => call(side, "GET", "/v1/agent/me", { headers: headersOf(side, "", -600_000) }),
  "GET /v1/agent/config": (side) => call(side, "GET", "/v1/agent/config"),
  "a poll": (side) => call(side, "GET", `/v1/devices/${side.deviceId}/commands`),
  "a poll for another device": (side) => call(side, "GET", "/v1/devices/dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R/commands"),
  "a heartbeat over REST": (side) => call(side, "POST", `/v1/devices/${side.deviceId}/heartbeat`, { body: '{"status":"online"}' }),
  "an ack over REST": async (side) => call(side, "POST", ackPath(side, await side.queue()), { body: '{"status":"succeeded"}' }),
  "an ack over REST without a status, and one with it": async (side) => {
    const path = ackPath(side, await side.queue());
    return [await call(side, "POST", path, { body: "{}" }), await call(side, "POST", path, { body: '{"status":"succeeded"}' })];
  },
  "an ack over REST of an unknown command": (side) => call(side, "POST", ackPath(side, "cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R"), { body: '{"status":"succeeded"}' }),
  "a code of pairing": (side) => initiate(side, "sha256:of-a-machine"),
  "a code of pairing for a fingerprint that is too short": (side) => initiate(side, "short"),
  "an activation with a wrong token": post("/v1/pairing/auto-activate", { enrollment_token: "mrt_wrong", pairing_code: "BCDF-GHJK" }),
  "an activation with an unknown code": (side) =>
    post("/v1/pairing/auto-activate", { enrollment_token: side.enrollmentToken, pairing_code: "BCDF-GHJK" })(side),
  "a collect with an unknown code": post("/v1/pairing/collect", {
    pairing_code: "BCDF-GHJK",
    device_fingerprint: "sha256:of-a-machine",
    pollToken: "pol_wrong",
  }),
  "the reported state": (side) => call(side, "PUT", "/v1/agent/reported-state", { body: '{"version":0,"apps":[]}' }),
  "the reported state without apps": (side) => call(side, "PUT", "/v1/agent/reported-state", { body: '{"version":0}' }),
  "the desired state": (side) => call(side, "GET", "/v1/agent/desired-state"),
  "the service's health": (side) => call(side, "GET", "/v1/health", { headers: {} }),
};

describe("both gateways answer alike", () => {
  test.each(Object.entries(STIMULI))("%s", async (_, stimulus) => {
    const [real, played] = [await stimulus(sides.real), await stimulus(sides.kit)];
    expect(played).toEqual(real);
    expect(real.length).toBeGreaterThan(0);
  });
});

test("each frame of the kit's gateway passes the contract's schema", async () => {
  for (const stimulus of Object.values(STIMULI)) await stimulus(sides.kit);
  expect(kitFrames.length).toBeGreaterThan(10);
  expect(kitFrames.filter((frame) => !ServerFrame.safeParse(frame).success)).toEqual([]);
});
