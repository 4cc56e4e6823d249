// One session on a socket: welcome, hello, ready, then heartbeats and the gateway's frames. It ends itself if the gateway falls silent.

import type { z } from "zod";
import { type AgentIdentity, CLOSE, type Goodbye, type Hello, sign } from "../../protocol/index.ts";
import type { AgentAck } from "./ack-sender.ts";
import type { AckAnswer, DataOf, Delivered, Frame } from "./frames.ts";
import type { AgentMachine } from "./machine.ts";
import type { AgentPlan } from "./plan.ts";
import type { SessionEnd } from "./reconnect.ts";
import type { Sign } from "./signing.ts";
import { openSocket } from "./socket.ts";
import { between, jittered, type Random } from "./timing/random.ts";
import { noop, type Time } from "./timing/time.ts";

/** Time limit for welcome and ready together. */
const OPENING_MS = 30_000;
/** After this many unanswered heartbeats and the plan's grace, the socket counts as dead. */
const UNANSWERED = 2;
const FIRST_HEARTBEAT_MS = 5_000;

export type WelcomeData = DataOf<"welcome">;
export type ReadyData = DataOf<"ready">;

export interface SessionDeps {
  readonly url: string;
  readonly identity: AgentIdentity;
  readonly sign: Sign;
  readonly time: Time;
  readonly random: Random;
  readonly serverNowMs: () => number;
  /** Timestamp for a signature; never the same twice. */
  readonly stampMs: () => number;
  /** The content of `hello`, beside the proof. */
  readonly hello: () => Omit<Hello, "proof">;
  /** Commands to list in heartbeats; undefined: no list. */
  readonly inFlightIds: () => readonly string[] | undefined;
  /** Overrides the gateway's interval. */
  readonly heartbeatSec: number | null;
  readonly metrics: AgentMachine["metrics"];
  /** The current plan. The session reads it after it has passed on `welcome` or `config`. */
  readonly plan: () => AgentPlan;
  readonly on: SessionEvents;
}

export interface SessionEvents {
  welcome(data: WelcomeData): void;
  ready(data: ReadyData): void;
  command(item: Delivered): void;
  cancel(order: DataOf<"cancel">): void;
  acked(answer: AckAnswer, ref: string | undefined): void;
  heartbeat(roundTripMs: number, resend: readonly string[]): void;
  config(change: DataOf<"config">): void;
  drain(order: DataOf<"drain">): void;
  end(end: SessionEnd): void;
}

export interface Session {
  /** The id from `welcome`; null before. */
  readonly id: string | null;
  ack(commandId: string, ack: AgentAck): string | null;
  goodbye(data: z.infer<typeof Goodbye>): void;
  close(code: number, reason: string): void;
  /** Ends the connection without a word. */
  cut(): void;
}

export const openSession = (deps: SessionDeps): Session => {
  const { time, random, on } = deps;
  let id: string | null = null;
  let ready = false;
  let unanswered = 0;
  let lastHeartbeat: { readonly id: string | null; readonly atMs: number } = { id: null, atMs: 0 };
  let roundTripMs: number | null = null;
  let cancelHeartbeat = noop;
  const cancelOpening = time.after(OPENING_MS, () => socket.close(CLOSE.helloTimeout.code, "no welcome or ready in time"));

  const closeSilent = (): void => socket.close(CLOSE.heartbeatTimeout.code, "heartbeats were not answered");
  const sendHeartbeat = (): void => {
    const inFlight = deps.inFlightIds();
    lastHeartbeat = {
      id: socket.send(
        {
          op: "heartbeat",
          data: {
            status: "online",
            metrics: { ...deps.metrics() },
            ...(inFlight && { inFlight: [...inFlight] }),
            ...(roundTripMs === null ? {} : { rttMs: roundTripMs }),
          },
        },
        true,
      ),
      atMs: time.elapsedMs(),
    };
    unanswered += 1;
    cancelHeartbeat = unanswered >= UNANSWERED ? time.after(deps.plan().heartbeat.graceMs, closeSilent) : nextHeartbeat();
  };
  const intervalMs = (): number => (deps.heartbeatSec ?? deps.plan().heartbeat.intervalSec) * 1_000;
  const nextHeartbeat = (): (() => void) => time.after(jittered(random, intervalMs(), deps.plan().heartbeat.jitterPct), sendHeartbeat);

  const sendHello = (welcome: WelcomeData): void => {
    id = welcome.sessionId;
    on.welcome(welcome);
    socket.pace(deps.plan().limits.inboundPerSec);
    const timestamp = new Date(deps.stampMs()).toISOString();
    socket.send({ op: "hello", data: { proof: { timestamp, signature: sign(deps.identity.secret, welcome.nonce, timestamp) }, ...deps.hello() } });
  };
  const start = (data: ReadyData): void => {
    ready = true;
    cancelOpening();
    on.ready(data);
    cancelHeartbeat = time.after(between(random, 0, Math.min(FIRST_HEARTBEAT_MS, intervalMs())), sendHeartbeat);
  };
  const answered = (frame: Extract<Frame, { op: "heartbeat_ack" }>): void => {
    if (unanswered >= UNANSWERED) {
      cancelHeartbeat();
      cancelHeartbeat = nextHeartbeat();
    }
    unanswered = 0;
    const lasted = frame.ref === lastHeartbeat.id ? time.elapsedMs() - lastHeartbeat.atMs : Number.NaN;
    roundTripMs = Number.isNaN(lasted) ? null : Math.round(lasted);
    on.heartbeat(lasted, frame.data.resend);
  };
  /** The gateway measures silence by the new interval at once, so a shorter interval replans the next heartbeat. */
  const change = (data: DataOf<"config">): void => {
    const before = intervalMs();
    on.config(data);
    socket.pace(deps.plan().limits.inboundPerSec);
    if (!ready || intervalMs() >= before || unanswered >= UNANSWERED) return;
    cancelHeartbeat();
    cancelHeartbeat = nextHeartbeat();
  };
  const dispatch = (frame: Frame): unknown => {
    switch (frame.op) {
      case "welcome":
        return sendHello(frame.data);
      case "ready":
        return start(frame.data);
      case "command":
        return on.command(frame.data);
      case "cancel":
        return on.cancel(frame.data);
      case "ack_ok":
        return on.acked(frame.data, frame.ref);
      case "heartbeat_ack":
        return answered(frame);
      case "config":
        return change(frame.data);
      case "drain":
        return on.drain(frame.data);
      // Acks that failed are resent by their own timer.
      case "error":
        return null;
      default:
        return frame satisfies never;
    }
  };
  const finish = (end: SessionEnd): void => {
    cancelOpening();
    cancelHeartbeat();
    on.end(end.kind === "closed" ? { ...end, wasReady: ready } : end);
  };
  const { url, identity, sign: signRequest, serverNowMs, stampMs } = deps;
  const socket = openSocket({ url, identity, sign: signRequest, time, serverNowMs, stampMs, onFrame: dispatch, onEnd: finish });

  return {
    get id() {
      return id;
    },
    ack: (commandId, ack) => (ready ? socket.send({ op: "ack", data: { commandId, ...ack } }) : null),
    goodbye: (data) => void socket.send({ op: "goodbye", data }, true),
    close: socket.close,
    cut: socket.cut,
  };
};
