// A session of the kit's gateway with the agent: it greets, checks the proof, sends what is due, and judges each frame.
import type { RawData, WebSocket } from "ws";
import type { z } from "zod";
import { AgentFrame, type Hello, SUBPROTOCOL } from "../../channel/agent.ts";
import { type BrokenRule, shown } from "../verdict.ts";
import type { Conduct } from "./conduct.ts";
import type { KitOrder, OrderBook } from "./order-book.ts";
import { jsonObject } from "./reply.ts";
import type { SignatureCheck } from "./signature-check.ts";

export interface HeardFrame {
  readonly frame: AgentFrame;
  readonly atMs: number;
}

export interface KitSession {
  /** 0 for the first of the case. */
  readonly number: number;
  readonly sessionId: string;
  readonly frames: readonly HeardFrame[];
  readonly hello: z.infer<typeof Hello> | null;
  readonly readyAtMs: number | null;
  /** Null while it is open. */
  readonly closed: { readonly code: number; readonly atMs: number } | null;
  /** Returns the id of the frame. */
  send(op: string, data: unknown, ref?: string): string;
  sendText(text: string): void;
  /** Sends a command, whatever was sent before. */
  deliver(order: KitOrder): string;
  ready(): void;
  /** Sends what is due. */
  push(): void;
  close(code: number, reason?: string): void;
  /** Breaks the connection. */
  cut(): void;
}

export interface KitSessionDeps {
  readonly socket: WebSocket;
  readonly number: number;
  readonly conduct: Conduct;
  readonly book: OrderBook;
  readonly signatures: SignatureCheck;
  readonly deviceId: string;
  readonly elapsedMs: () => number;
  readonly fault: (finding: BrokenRule) => void;
  readonly trace: (what: string, data: unknown) => void;
}

const NONCE = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA";
/** Frames a second, and at one moment. The allowance of a second more is for what a busy machine holds up and then brings at once. */
const [RATE, BURST] = [20, 80];

export const openKitSession = ({ socket, number, conduct, book, signatures, deviceId, elapsedMs, fault, trace }: KitSessionDeps): KitSession => {
  const sessionId = `ses_kit_${number}`;
  const frames: HeardFrame[] = [];
  const ids = new Set<string>();
  let sent = 0;
  let hello: (z.infer<typeof Hello> & { readonly id: string }) | null = null;
  let readyAtMs: number | null = null;
  let closed: KitSession["closed"] = null;

  const sendText = (text: string): void => {
    trace(`gateway ${number}`, text);
    if (socket.readyState === socket.OPEN) socket.send(text);
  };
  const send: KitSession["send"] = (op, data, ref) => {
    sent += 1;
    const id = `s${sent}`;
    sendText(JSON.stringify({ op, id, ts: new Date(signatures.nowMs()).toISOString(), ...(ref === undefined ? {} : { ref }), data }));
    return id;
  };
  const deliver = (order: KitOrder): string => {
    order.attempts += 1;
    order.sentIn = number;
    return send("command", book.frameOf(order));
  };
  const push = (): void => {
    if (readyAtMs === null || closed !== null || !conduct.pushes) return;
    for (const order of book.due(Math.min(32, Math.max(1, Math.floor(hello?.maxInFlight ?? 8))))) deliver(order);
  };
  const ready = (): void => {
    if (hello === null) return;
    readyAtMs = elapsedMs();
    const listed = new Set(hello.inFlight.map(({ commandId }) => commandId));
    if (hello.capabilities.includes("inflight.v1"))
      for (const order of book.orders.values())
        if (order.final === null && order.acks.length > 0 && !listed.has(order.commandId))
          fault({ rule: "R12.1", due: `${order.commandId} in the list of hello, because its result is not confirmed`, seen: shown([...listed]) });
    const reconcile = conduct.reconcile ?? hello.inFlight.map(({ commandId }) => ({ commandId, action: "continue" }));
    send("ready", { deviceId, epoch: number + 1, queuedCount: 0, reconcile, ...conduct.readyMore }, hello.id);
    book.sendAgain();
    push();
  };
  const greet = (frame: Extract<AgentFrame, { op: "hello" }>): unknown => {
    if (hello !== null) fault({ rule: "R5.2", due: "one hello in a session", seen: "a second one" });
    hello = { ...frame.data, id: frame.id };
    if (!signatures.checkProof(NONCE, frame.data.proof)) {
      fault({ rule: "R5.1", due: "a proof that signs the nonce of welcome", seen: shown(frame.data.proof) });
      return socket.close(4500, "auth_failed");
    }
    if (!frame.data.capabilities.includes("journal.v1")) fault({ rule: "R5.5", due: "the capability journal.v1", seen: shown(frame.data.capabilities) });
    return conduct.readies && ready();
  };
  const answer = (frame: AgentFrame): unknown => {
    if (frame.op === "hello") return greet(frame);
    if (readyAtMs === null) return fault({ rule: "R5.2", due: "nothing but hello before ready", seen: frame.op });
    if (frame.op === "heartbeat" && conduct.answersHeartbeats)
      send("heartbeat_ack", { serverTime: new Date(signatures.nowMs()).toISOString(), ...conduct.heartbeatMore }, frame.id);
    if (frame.op !== "ack") return null;
    const stored = book.take(frame.data, elapsedMs(), number);
    const said = conduct.answerAck(frame.data, stored);
    if (said !== null) send("ack_ok", said.data, said.ref ?? frame.id);
    return push();
  };
  let [tokens, countedMs] = [BURST, elapsedMs()];
  const tooMany = (): boolean => {
    const nowMs = elapsedMs();
    tokens = Math.min(BURST, tokens + ((nowMs - countedMs) / 1_000) * RATE) - 1;
    countedMs = nowMs;
    return tokens < 0;
  };
  const judge = (bytes: RawData, isBinary: boolean): unknown => {
    const text = bytes.toString();
    trace(`agent ${number}`, text);
    const parsed = isBinary ? null : AgentFrame.safeParse(jsonObject(text));
    if (parsed?.data === undefined)
      return fault({
        rule: "R5.6",
        due: "frames of the documents",
        seen: shown(`${text} (${parsed?.error?.issues[0]?.path.join(".") ?? "binary"}: ${parsed?.error?.issues[0]?.message ?? ""})`),
      });
    const frame = parsed.data;
    if (ids.has(frame.id)) fault({ rule: "R5.7", due: "an id of its own for each frame of a connection", seen: `${frame.id} twice` });
    ids.add(frame.id);
    frames.push({ frame, atMs: elapsedMs() });
    if (tooMany()) fault({ rule: "R5.10", due: `at most ${RATE} frames a second`, seen: `more than ${BURST} frames at once` });
    return answer(frame);
  };

  const session: KitSession = {
    number,
    sessionId,
    frames,
    get hello() {
      return hello;
    },
    get readyAtMs() {
      return readyAtMs;
    },
    get closed() {
      return closed;
    },
    send,
    sendText,
    deliver,
    ready,
    push,
    close: (code, reason = "") => {
      trace(`gateway ${number}`, `close ${code} ${reason}`);
      socket.close(code, reason);
    },
    cut: () => {
      trace(`gateway ${number}`, "cut");
      socket.terminate();
    },
  };
  socket.on("message", judge);
  socket.on("close", (code) => {
    trace(`agent ${number}`, `closed ${code}`);
    closed = { code, atMs: elapsedMs() };
  });
  socket.on("error", (error) => trace(`agent ${number}`, error.message));
  if (conduct.welcomes)
    send("welcome", {
      protocol: SUBPROTOCOL,
      sessionId,
      nonce: NONCE,
      serverTime: new Date(signatures.nowMs()).toISOString(),
      capabilities: [],
      ...conduct.welcome,
    });
  return session;
};
