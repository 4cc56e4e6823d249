// A small gateway on `ws` that each test scripts: it checks the agent's proof and otherwise accepts everything.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { AgentFrame, HEADERS, SIGNATURE_VERSIONS_HEADER, SUBPROTOCOL, verify } from "../../protocol/index.ts";
import { eventually } from "../kit/checks/eventually.ts";

export const SECRET = "test-shared-secret-0001";
export interface FakeSession {
  readonly frames: AgentFrame[];
  send(op: string, data: unknown, ref?: string): void;
  close(code: number, reason?: string): void;
  /** Breaks the TCP connection. */
  cut(): void;
  /** The close code; null while it is open. */
  readonly closed: { code: number | null };
}
export interface FakeRefusal {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}
/** What something between agent and gateway answers. */
export interface ForeignAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text: string;
  /** `cut`: the connection breaks after the text. `endless`: more and more follows. Default: the answer ends. */
  readonly after?: "cut" | "endless";
}
export interface FakeGateway {
  readonly url: string;
  readonly sessions: FakeSession[];
  readonly upgrades: IncomingMessage["headers"][];
  /** The path of each upgrade. */
  readonly paths: string[];
  /** Every REST request: "METHOD /path body". */
  readonly requests: string[];
  /** Answers instead of the gateway: to a REST request by its path, and to an upgrade. */
  foreign: ((target: string) => ForeignAnswer | null) | null;
  refuse: ((headers: IncomingMessage["headers"]) => FakeRefusal | null) | null;
  /** The answer to every REST request; null for a good one. */
  refuseRest: FakeRefusal | null;
  /** The answer to every ack over REST. */
  refuseAcks: FakeRefusal | null;
  /** Whether to answer a valid hello, given the number of sessions so far. */
  ready: (sessions: number) => boolean;
  /** Whether to answer heartbeats and acks. */
  polite: boolean;
  /** Replaces fields of the usual welcome; null removes one. */
  welcome: Record<string, unknown>;
  /** The answer to an ack. */
  ackOk: Record<string, unknown>;
  reconcile: { commandId: string; action: string }[];
  due: unknown[];
  session(n: number): Promise<FakeSession>;
  close(): Promise<void>;
}

const NONCE = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA";
const now = (): string => new Date().toISOString();
/** What every answer of a gateway has. */
export const OWN_HEADERS = { "content-type": "application/json", [SIGNATURE_VERSIONS_HEADER]: "1,2" };
const CHUNK = "x".repeat(65_536);

const answerForeign = (socket: Socket, { status, headers = {}, text, after }: ForeignAnswer): void => {
  const all = { ...(after === "endless" ? {} : { "content-length": String(Buffer.byteLength(text) + (after === "cut" ? 1 : 0)) }), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} Foreign\r\nconnection: close\r\n${lines.join("")}\r\n${text}`);
  socket.on("error", () => undefined);
  if (after !== "endless") return void socket.end();
  const more = (): void => {
    while (!socket.destroyed && socket.write(CHUNK));
  };
  socket.on("drain", more);
  more();
};
const defaults = {
  protocol: SUBPROTOCOL,
  nonce: NONCE,
  capabilities: [],
  heartbeat: { intervalSec: 5, jitterPct: 10 },
  limits: { maxFrameBytes: 131_072, maxOutputBytes: 65_536, maxInFlight: 32, inboundPerSec: 1_000 },
  reconnect: { firstWindowMs: 500, baseMs: 200, capMs: 2_000, stableAfterSec: 60 },
  poll: { intervalSec: 3 },
  sessionMaxAgeSec: 86_400,
};

export const startFakeGateway = async (): Promise<FakeGateway> => {
  const server = createServer((request, response) => void rest(request, response));
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => SUBPROTOCOL });
  const tcp = new Set<Socket>();
  server.on("connection", (socket) => tcp.add(socket));

  const greet = (gateway: FakeGateway, socket: WebSocket, cut: () => void): void => {
    let id = 0;
    const frames: AgentFrame[] = [];
    const send: FakeSession["send"] = (op, data, ref) => {
      id += 1;
      socket.send(JSON.stringify({ op, id: String(id), ts: now(), ...(ref === undefined ? {} : { ref }), data }));
    };
    socket.on("message", (bytes) => {
      const frame = AgentFrame.parse(JSON.parse(bytes.toString()));
      frames.push(frame);
      if (frame.op === "hello") {
        const { timestamp, signature } = frame.data.proof;
        if (!verify(SECRET, NONCE, timestamp, signature)) return socket.close(4500, "auth_failed");
        if (!gateway.ready(gateway.sessions.length)) return;
        return send("ready", { deviceId: "dev_1", epoch: 1, queuedCount: 0, reconcile: gateway.reconcile }, frame.id);
      }
      if (frame.op === "heartbeat" && gateway.polite) send("heartbeat_ack", { serverTime: now() }, frame.id);
      if (frame.op === "ack" && gateway.polite) send("ack_ok", { commandId: frame.data.commandId, ...gateway.ackOk }, frame.id);
    });
    const closed: FakeSession["closed"] = { code: null };
    socket.on("close", (code) => {
      closed.code = code;
    });
    gateway.sessions.push({ frames, send, cut, closed, close: (code, reason) => socket.close(code, reason) });
    const figures = Object.entries({ ...defaults, sessionId: `ses_${gateway.sessions.length}`, serverTime: now(), ...gateway.welcome });
    send("welcome", Object.fromEntries(figures.filter(([, value]) => value !== null)));
  };
  const rest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const signed = verify(SECRET, body, String(request.headers[HEADERS.timestamp]), String(request.headers[HEADERS.signature]));
    gateway.requests.push(`${request.method} ${request.url} ${body}`.trim());
    const foreign = gateway.foreign?.(request.url ?? "") ?? null;
    if (foreign !== null) return answerForeign(request.socket, foreign);
    const refusal = gateway.refuseRest ?? (request.url?.endsWith("/ack") ? gateway.refuseAcks : null);
    if (refusal) {
      const { status, headers, body: answer } = refusal;
      response.writeHead(status, { ...OWN_HEADERS, ...headers }).end(JSON.stringify({ success: status < 300, ...(answer as object) }));
      return;
    }
    const data =
      request.method === "GET"
        ? gateway.due
        : {
            commandId: decodeURIComponent(request.url ?? "")
              .split("/")
              .at(-2),
            status: "succeeded",
            result: "applied",
          };
    response.writeHead(signed ? 200 : 401, OWN_HEADERS).end(JSON.stringify({ success: signed, data }));
  };
  server.on("upgrade", (request, socket: Socket, head) => {
    // The agent may hang up first.
    socket.on("error", () => undefined);
    gateway.upgrades.push(request.headers);
    gateway.paths.push(request.url ?? "");
    const foreign = gateway.foreign?.("upgrade") ?? null;
    if (foreign !== null) return answerForeign(socket, foreign);
    const refusal = gateway.refuse?.(request.headers) ?? null;
    if (!refusal) return sockets.handleUpgrade(request, socket, head, (ws) => greet(gateway, ws, () => socket.destroy()));
    const body = JSON.stringify({ success: false, ...(refusal.body as object) });
    const headers = Object.entries({ ...OWN_HEADERS, "content-length": String(Buffer.byteLength(body)), ...refusal.headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    socket.end(`HTTP/1.1 ${refusal.status} No\r\n${headers.join("")}\r\n${body}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const gateway: FakeGateway = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sessions: [],
    upgrades: [],
    paths: [],
    requests: [],
    foreign: null,
    refuse: null,
    refuseRest: null,
    refuseAcks: null,
    ready: () => true,
    polite: true,
    welcome: {},
    ackOk: { status: "succeeded", result: "applied" },
    reconcile: [],
    due: [],
    session: (n) =>
      eventually(() => {
        const session = gateway.sessions[n];
        if (!session?.frames.some(({ op }) => op === "hello")) throw new Error(`there is no session ${n} yet`);
        return session;
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of tcp) socket.destroy();
      }),
  };
  return gateway;
};
