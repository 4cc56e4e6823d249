// The gateway that the kit plays for one agent: HTTP, the agent socket and the carrier's upgrade on one port of this machine.
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { WebSocketServer } from "ws";
import { CONNECT_PATHS, SUBPROTOCOL } from "../../channel/agent.ts";
import type { Time } from "../../kit/timers.ts";
import { type BrokenRule, shown } from "../verdict.ts";
import { answerAgentCalls, type DeviceState } from "./agent-calls.ts";
import { type Conduct, goodConduct } from "./conduct.ts";
import { type KitSession, openKitSession } from "./kit-session.ts";
import { createOrderBook, type OrderBook } from "./order-book.ts";
import { createKitPairing, type KitPairing } from "./pairing-calls.ts";
import { accept, ELSEWHERE, foreignReply, type HeardCall, headerOf, jsonObject, type KitReply, refuseCall } from "./reply.ts";
import { createSignatureCheck, type SignatureRules } from "./signature-check.ts";

export const KIT_SECRET = "test-shared-secret-0001";
export const KIT_TOKEN = "mrt_kit_enrollment_token";
const MAX_BODY = 1_048_576;

export interface KitGateway {
  readonly url: string;
  readonly conduct: Conduct;
  readonly rules: SignatureRules;
  readonly pairing: KitPairing;
  readonly book: OrderBook;
  readonly state: DeviceState;
  readonly sessions: readonly KitSession[];
  /** Each call over REST, and what it was answered. */
  readonly calls: readonly (HeardCall & { readonly status: number })[];
  readonly upgrades: readonly HeardCall[];
  /** What the agent did against the documents, whatever the case looks at. */
  readonly faults: readonly BrokenRule[];
  /** The response of pairing. */
  identityText(): Readonly<Record<string, unknown>>;
  /** Takes the sockets of upgrades to other paths. */
  onOtherUpgrade: ((call: HeardCall, socket: Socket, head: Buffer) => boolean) | null;
  close(): Promise<void>;
}

const hear = (request: IncomingMessage, body: string, atMs: number): HeardCall => {
  const [path = "", query = ""] = (request.url ?? "").split(/\?(.*)/s);
  const headers = new Map<string, string[]>();
  for (let n = 0; n < request.rawHeaders.length; n += 2) {
    const name = request.rawHeaders[n]?.toLowerCase() ?? "";
    headers.set(name, [...(headers.get(name) ?? []), request.rawHeaders[n + 1] ?? ""]);
  }
  return {
    method: request.method ?? "",
    path: path.replace(/^\/api\/v1/, "/v1"),
    query,
    headers,
    body,
    json: jsonObject(body),
    atMs,
  };
};

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes <= MAX_BODY) chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
};

/** Writes an answer as it stands: of an upgrade, or one that breaks off. */
const writeRaw = (socket: Socket, { status, headers = {}, text, isCut }: KitReply): void => {
  const length = Buffer.byteLength(text) + (isCut ? 1 : 0);
  const lines = Object.entries({ "content-length": String(length), connection: "close", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Kit\r\n${lines.join("")}\r\n${text}`);
};

export interface KitGatewayDeps {
  readonly time: Time;
  readonly trace: (what: string, data: unknown) => void;
}

export const openKitGateway = async ({ time, trace }: KitGatewayDeps): Promise<KitGateway> => {
  const identity = { deviceId: "dev_kit", agentId: "agt_kit", tenantId: "ten_kit" };
  const rules: SignatureRules = { identity, secrets: [KIT_SECRET], clockOffsetMs: 0, needsV2: false, onUse: () => undefined };
  const [faults, sessions, upgrades, calls, tcp]: [BrokenRule[], KitSession[], HeardCall[], (HeardCall & { status: number })[], Set<Socket>] = [
    [],
    [],
    [],
    [],
    new Set(),
  ];
  const fault = (finding: BrokenRule): void => {
    trace("fault", finding);
    faults.push(finding);
  };
  const signatures = createSignatureCheck(rules, time, fault);
  const conduct = goodConduct();
  const book = createOrderBook(signatures.nowMs);
  const state: DeviceState = {
    desired: { version: 0, apps: [], tunnels: [] },
    secrets: {},
    nextSecret: null,
    ignored: [],
    watched: true,
    reports: [],
    logs: [],
    events: [],
  };
  let url = "";
  const identityText = () => ({
    device_id: identity.deviceId,
    agent_id: identity.agentId,
    tenant_id: identity.tenantId,
    shared_secret: rules.secrets[0],
    fingerprint: "sha256:kit",
    connect: { url: `${url.replace(/^http/, "ws")}/v1/agent/connect`, coldStartMs: 0 },
    infrastructure_secrets: { API_URL: url },
    something_new: { from: "a newer gateway" },
  });
  const pairing = createKitPairing({ token: KIT_TOKEN, identity: identityText, fault });
  const signed = answerAgentCalls({ identity, url: () => url, conduct, book, state, nowMs: signatures.nowMs, fault });

  const replyTo = (call: HeardCall): KitReply => {
    if (call.body.includes(KIT_SECRET) || call.query.includes(KIT_SECRET))
      fault({ rule: "R1.5", due: "the secret in no request", seen: `${call.method} ${call.path}` });
    if (call.path === ELSEWHERE) {
      fault({ rule: "R0.6", due: "no redirect is followed", seen: `a call to ${ELSEWHERE}` });
      return foreignReply(404);
    }
    const instead = conduct.onCall(call);
    if (instead !== null) return instead;
    const paired = pairing.answer(call);
    if (paired !== null) return paired;
    // Anybody may ask for the service's health.
    if (call.path === "/v1/health") return accept({ status: "ok" });
    return signatures.check(call) ?? signed(call);
  };
  const rest = async (request: IncomingMessage): Promise<void> => {
    const call = hear(request, await readBody(request), time.elapsedMs());
    trace("agent", `${call.method} ${call.path}${call.query === "" ? "" : `?${call.query}`} ${shown(call.body)}`);
    const reply = replyTo(call);
    calls.push({ ...call, status: reply.status });
    trace("gateway", `${reply.status} ${shown(reply.text)}`);
    writeRaw(request.socket, reply);
  };
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => SUBPROTOCOL, maxPayload: 262_144 });
  const connect = (request: IncomingMessage, socket: Socket, head: Buffer): unknown => {
    const call = hear(request, "", time.elapsedMs());
    if (!(CONNECT_PATHS as readonly string[]).includes(call.path) && gateway.onOtherUpgrade?.(call, socket, head)) return null;
    upgrades.push(call);
    trace("agent", `upgrade ${call.path}`);
    const refused = conduct.onUpgrade() ?? signatures.check(call);
    if (refused !== null) {
      trace("gateway", `${refused.status} ${shown(refused.text)}`);
      return writeRaw(socket, refused);
    }
    if (!(headerOf(call, "sec-websocket-protocol") ?? "").includes(SUBPROTOCOL))
      fault({ rule: "R4.2", due: `the subprotocol ${SUBPROTOCOL}`, seen: headerOf(call, "sec-websocket-protocol") ?? "none" });
    return sockets.handleUpgrade(request, socket, head, (ws) => {
      sessions.push(
        openKitSession({
          socket: ws,
          number: sessions.length,
          conduct,
          book,
          signatures,
          deviceId: identity.deviceId,
          elapsedMs: time.elapsedMs,
          fault,
          trace,
        }),
      );
    });
  };

  const server: Server = createServer((request, response) => {
    void rest(request).catch(() => response.destroy());
  });
  server.on("connection", (socket) => {
    tcp.add(socket);
    socket.on("close", () => tcp.delete(socket)).on("error", () => undefined);
  });
  server.on("upgrade", connect);
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const gateway: KitGateway = {
    url,
    conduct,
    rules,
    pairing,
    book,
    state,
    sessions,
    calls,
    upgrades,
    faults,
    identityText,
    onOtherUpgrade: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of tcp) socket.destroy();
        sockets.close();
      }),
  };
  return gateway;
};

/** A refusal of the gateway for each status that agents meet. */
export const REFUSALS = {
  unknownAgent: refuseCall(401, "UNAUTHORIZED", { details: { reason: "unknown_agent" } }),
  forbidden: (retryAfter: number): KitReply => refuseCall(403, "FORBIDDEN", { details: { reason: "device_revoked" }, retryAfter }),
  limited: (retryAfter: number): KitReply => refuseCall(429, "RATE_LIMIT_EXCEEDED", { details: { bucket: "connect" }, retryAfter }),
  unavailable: (retryAfter: number): KitReply => refuseCall(503, "SERVICE_UNAVAILABLE", { retryAfter }),
};
