// One session on a socket: welcome, hello, ready, then heartbeats and what the gateway sends. Ends by itself when the peer falls silent.

import type { z } from "zod";
import { type AgentIdentity, CLOSE, type Goodbye, type Hello, sign } from "../../protocol/index.ts";
import type { Word } from "./acks.ts";
import type { AckAnswer, DataOf, Delivered, Frame } from "./frames.ts";
import { vitals } from "./handlers.ts";
import type { Plan } from "./plan.ts";
import { between, jittered, type Random } from "./random.ts";
import type { End } from "./reconnect.ts";
import type { Sign } from "./signing.ts";
import { openSocket } from "./socket.ts";
import { nothing, type Time } from "./time.ts";

/** How long welcome and ready may take. */
const OPENING_MS = 30_000;
/** After so many heartbeats without an answer, and this grace, the socket is taken for dead. */
const UNANSWERED = 2;
const FIRST_BEAT_MS = 5_000;

export type WelcomeData = DataOf<"welcome">;
export type ReadyData = DataOf<"ready">;

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
  /** The gateway's figures as they are now; `welcome` and `config` are told before they are asked for. */
  readonly plan: () => Plan;
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
    cancelBeat = unanswered >= UNANSWERED ? time.after(deps.plan().heartbeat.graceMs, silent) : nextBeat();
  };
  const intervalMs = (): number => (deps.heartbeatSec ?? deps.plan().heartbeat.intervalSec) * 1_000;
  const nextBeat = (): (() => void) => time.after(jittered(random, intervalMs(), deps.plan().heartbeat.jitterPct), beat);

  const greet = (welcome: WelcomeData): void => {
    id = welcome.sessionId;
    on.welcome(welcome);
    socket.pace(deps.plan().limits.inboundPerSec);
    const timestamp = new Date(deps.stampMs()).toISOString();
    socket.send({ op: "hello", data: { proof: { timestamp, signature: sign(deps.identity.secret, welcome.nonce, timestamp) }, ...deps.introduce() } });
  };
  const start = (data: ReadyData): void => {
    ready = true;
    cancelOpening();
    on.ready(data);
    cancelBeat = time.after(between(random, 0, Math.min(FIRST_BEAT_MS, intervalMs())), beat);
  };
  const answered = (frame: Extract<Frame, { op: "heartbeat_ack" }>): void => {
    if (unanswered >= UNANSWERED) {
      cancelBeat();
      cancelBeat = nextBeat();
    }
    unanswered = 0;
    const lasted = frame.ref === lastBeat.id ? time.elapsedMs() - lastBeat.atMs : Number.NaN;
    roundTripMs = Number.isNaN(lasted) ? null : Math.round(lasted);
    on.heartbeat(lasted, frame.data.resend);
  };
  /** The gateway measures silence by the new interval from now on: a beat that was planned for later comes as soon as the new one wants it. */
  const change = (data: DataOf<"config">): void => {
    const before = intervalMs();
    on.config(data);
    socket.pace(deps.plan().limits.inboundPerSec);
    if (!ready || intervalMs() >= before || unanswered >= UNANSWERED) return;
    cancelBeat();
    cancelBeat = nextBeat();
  };
  const dispatch = (frame: Frame): unknown => {
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
