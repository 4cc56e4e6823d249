// One session on a socket: welcome, hello, ready, then heartbeats and what the gateway sends. Ends by itself when the peer falls silent.

import type { z } from "zod";
import {
  type AckResult,
  type AgentIdentity,
  type CancelOrder,
  CLOSE,
  type ConfigChange,
  type DeliveredCommand,
  type Drain,
  type Goodbye,
  type Hello,
  type Ready,
  type ServerFrame,
  sign,
  type Welcome,
} from "../protocol/index.ts";
import type { Word } from "./acks.ts";
import { vitals } from "./handlers.ts";
import { between, jittered, type Random } from "./random.ts";
import type { End } from "./reconnect.ts";
import type { Sign } from "./signing.ts";
import { openSocket } from "./socket.ts";
import { nothing, type Time } from "./time.ts";

/** How long welcome and ready may take. */
const OPENING_MS = 30_000;
/** After so many heartbeats without an answer, and this grace, the socket is taken for dead. */
const UNANSWERED = 2;
const GRACE_MS = 10_000;
const FIRST_BEAT_MS = 5_000;

export type WelcomeData = z.infer<typeof Welcome>;
export type ReadyData = z.infer<typeof Ready>;

export interface SessionDeps {
  readonly url: string;
  readonly identity: AgentIdentity;
  readonly sign: Sign;
  readonly time: Time;
  readonly random: Random;
  readonly serverNowMs: () => number;
  /** The time to sign with; never the same twice. */
  readonly stampMs: () => number;
  /** What hello says beside the proof. */
  readonly introduce: () => Omit<Hello, "proof">;
  /** Commands that heartbeats name; undefined when they name none. */
  readonly heldIds: () => readonly string[] | undefined;
  /** Replaces the gateway's interval. */
  readonly heartbeatSec: number | null;
  readonly on: SessionEvents;
}

export interface SessionEvents {
  welcome(data: WelcomeData): void;
  ready(data: ReadyData): void;
  command(item: DeliveredCommand): void;
  cancel(order: z.infer<typeof CancelOrder>): void;
  acked(result: AckResult, ref: string | undefined): void;
  heartbeat(roundTripMs: number, resend: readonly string[]): void;
  config(change: z.infer<typeof ConfigChange>): void;
  drain(order: z.infer<typeof Drain>): void;
  end(end: End): void;
}

export interface Session {
  /** As the gateway named it in `welcome`; null before. */
  readonly id: string | null;
  ack(commandId: string, word: Word): string | null;
  goodbye(data: z.infer<typeof Goodbye>): void;
  close(code: number, reason: string): void;
}

export const openSession = (deps: SessionDeps): Session => {
  const { time, random, on } = deps;
  let id: string | null = null;
  let ready = false;
  let interval = { intervalSec: 30, jitterPct: 10 };
  let unanswered = 0;
  let lastBeat: { readonly id: string | null; readonly atMs: number } = { id: null, atMs: 0 };
  let roundTripMs: number | null = null;
  let cancelBeat = nothing;
  const cancelOpening = time.after(OPENING_MS, () => socket.close(CLOSE.helloTimeout.code, "no welcome or ready in time"));

  const silent = (): void => socket.close(CLOSE.heartbeatTimeout.code, "heartbeats without an answer");
  const beat = (): void => {
    const inFlight = deps.heldIds();
    lastBeat = {
      id: socket.send(
        {
          op: "heartbeat",
          data: {
            status: "online",
            metrics: { ...vitals() },
            ...(inFlight && { inFlight: [...inFlight] }),
            ...(roundTripMs === null ? {} : { rttMs: roundTripMs }),
          },
        },
        true,
      ),
      atMs: time.elapsedMs(),
    };
    unanswered += 1;
    cancelBeat = unanswered >= UNANSWERED ? time.after(GRACE_MS, silent) : nextBeat();
  };
  const nextBeat = (): (() => void) => time.after(jittered(random, interval.intervalSec * 1_000, interval.jitterPct), beat);
  const setInterval = (plan: { readonly intervalSec: number; readonly jitterPct: number }): void => {
    interval = deps.heartbeatSec === null ? plan : { ...plan, intervalSec: deps.heartbeatSec };
  };

  const greet = (welcome: WelcomeData): void => {
    id = welcome.sessionId;
    setInterval(welcome.heartbeat);
    socket.pace(welcome.limits.inboundPerSec);
    on.welcome(welcome);
    const timestamp = new Date(deps.stampMs()).toISOString();
    socket.send({ op: "hello", data: { proof: { timestamp, signature: sign(deps.identity.secret, welcome.nonce, timestamp) }, ...deps.introduce() } });
  };
  const start = (data: ReadyData): void => {
    ready = true;
    cancelOpening();
    on.ready(data);
    cancelBeat = time.after(between(random, 0, Math.min(FIRST_BEAT_MS, interval.intervalSec * 1_000)), beat);
  };
  const answered = (frame: Extract<ServerFrame, { op: "heartbeat_ack" }>): void => {
    if (unanswered >= UNANSWERED) {
      cancelBeat();
      cancelBeat = nextBeat();
    }
    unanswered = 0;
    const lasted = frame.ref === lastBeat.id ? time.elapsedMs() - lastBeat.atMs : Number.NaN;
    roundTripMs = Number.isNaN(lasted) ? null : Math.round(lasted);
    on.heartbeat(lasted, frame.data.resend ?? []);
  };
  /** The gateway measures silence by the new interval from now on: a beat that was planned for later comes as soon as the new one wants it. */
  const replan = (plan: { readonly intervalSec: number; readonly jitterPct: number }): void => {
    const before = interval.intervalSec;
    setInterval(plan);
    if (!ready || interval.intervalSec >= before || unanswered >= UNANSWERED) return;
    cancelBeat();
    cancelBeat = nextBeat();
  };
  const change = (data: z.infer<typeof ConfigChange>): void => {
    if (data.heartbeat) replan(data.heartbeat);
    if (data.limits) socket.pace(data.limits.inboundPerSec);
    on.config(data);
  };
  const dispatch = (frame: ServerFrame): unknown => {
    switch (frame.op) {
      case "welcome":
        return greet(frame.data);
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
      // It names what was wrong with a frame of ours; what matters is sent again by its own timer.
      case "error":
        return null;
      default:
        return frame satisfies never;
    }
  };
  const finish = (end: End): void => {
    cancelOpening();
    cancelBeat();
    on.end(end.kind === "closed" ? { ...end, wasReady: ready } : end);
  };
  const { url, identity, sign: signRequest, serverNowMs, stampMs } = deps;
  const socket = openSocket({ url, identity, sign: signRequest, time, serverNowMs, stampMs, onFrame: dispatch, onEnd: finish });

  return {
    get id() {
      return id;
    },
    ack: (commandId, word) => (ready ? socket.send({ op: "ack", data: { commandId, ...word } }) : null),
    goodbye: (data) => void socket.send({ op: "goodbye", data }, true),
    close: socket.close,
  };
};
