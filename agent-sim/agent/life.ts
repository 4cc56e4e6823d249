// What an agent knows and has in hand over all its sessions, and the few things done to it from everywhere.
import type { AgentIdentity } from "../../protocol/index.ts";
import type { Acks } from "./acks.ts";
import type { AckAnswer, Delivered } from "./frames.ts";
import type { Handlers } from "./handlers.ts";
import type { Http } from "./http.ts";
import type { Journal } from "./journal.ts";
import type { Keys } from "./keys.ts";
import type { Plan } from "./plan.ts";
import type { Polling } from "./polling.ts";
import type { Random } from "./random.ts";
import type { End } from "./reconnect.ts";
import type { Session } from "./session.ts";
import type { Sign } from "./signing.ts";
import type { Time } from "./time.ts";
import type { Work } from "./work.ts";

/** A clock this close to the gateway's is left alone: the difference may be the way of the message. */
const CLOCK_TOLERANCE_MS = 1_000;
/** A machine without a battery begins in 1970, which no gateway takes for a time; this one is refused too, but together with the right one. */
const EARLIEST_STAMP_MS = Date.UTC(2000, 0);

export type AgentPhase = "idle" | "connecting" | "ready" | "waiting" | "halted" | "polling" | "stopped";

export interface AgentEvents {
  ready?(): void;
  /** The session or the attempt is over; null means: waits for an operator. */
  away?(end: End, reconnectInMs: number | null): void;
  delivered?(commandId: string, channel: "socket" | "poll", item: Delivered): void;
  executed?(commandId: string, type: string): void;
  settled?(answer: AckAnswer): void;
  /** The gateway says on reconnecting that it owes no answer: its ack_ok was lost on the way. */
  forgotten?(commandId: string): void;
  heartbeat?(roundTripMs: number): void;
  polled?(): void;
  alarm?(text: string): void;
}

export interface AgentOptions {
  readonly url: string;
  /** Where the socket is, when pairing has said so; else it is below `url`. */
  readonly socketUrl?: string | undefined;
  readonly deviceId: string;
  readonly identity: AgentIdentity;
  /** Where its secrets are kept; default: in memory, beginning with that of the identity. */
  readonly keys?: Keys;
  readonly fingerprint?: string;
  /** Names this process towards the gateway; default: random. */
  readonly instanceId?: string;
  readonly journal: Journal;
  readonly handlers: Handlers;
  readonly http: Http;
  readonly time: Time;
  readonly random: Random;
  /** `poll`: never asks for a socket. */
  readonly mode?: "socket" | "poll";
  /** The first connect comes at a random moment within it; default 30 s, so that machines that start together do not connect together. */
  readonly firstWindowMs?: number;
  readonly heartbeatSec?: number | null;
  /** 2: signs method, path, query and a nonce as well. Default 1. */
  readonly signatureVersion?: 1 | 2;
  readonly maxInFlight?: number;
  /** What it announces; default: all that it can. It lists what it holds only if it says so. */
  readonly capabilities?: readonly string[];
  readonly bootId?: string;
  readonly on?: AgentEvents;
}

/** What changes over the life of an agent. */
export interface Life {
  phase: AgentPhase;
  /** The one that carries words and work; after a `drain` that asked for it another is opened beside it. */
  session: Session | null;
  /** Opened to take the session's place as soon as it is ready. */
  heir: Session | null;
  channel: "socket" | "poll" | null;
  offsetMs: number;
  lastStampMs: number;
  corrected: boolean;
  attempt: number;
  drainMs: number | null;
  plan: Plan;
  cancelReconnect: () => void;
  cancelHandoff: () => void;
  cancelStable: () => void;
  cancelBeat: () => void;
  cancelRotation: () => void;
  secretInUse: string;
}

export interface Parts {
  readonly options: AgentOptions;
  readonly life: Life;
  readonly acks: Acks;
  readonly work: Work;
  readonly polling: Polling;
  readonly instanceId: string;
  readonly keys: Keys;
  readonly sign: Sign;
}

export const serverNowMs = ({ time }: AgentOptions, life: Life): number => time.wallMs() + life.offsetMs;
/** A signature covers body and time only. With a time of its own each request has a signature of its own, and none is taken for a replay of another. */
export const stampMs = (options: AgentOptions, life: Life): number => {
  life.lastStampMs = Math.max(serverNowMs(options, life), life.lastStampMs + 1, EARLIEST_STAMP_MS);
  return life.lastStampMs;
};
export const isOver = ({ phase }: Life): boolean => phase === "stopped";

/** Keeps the difference to the gateway's clock; the machine's own clock is not touched. */
export const correctClock = ({ time }: AgentOptions, life: Life, serverTimeMs: number): void => {
  const offsetMs = serverTimeMs - time.wallMs();
  if (Number.isNaN(offsetMs) || Math.abs(offsetMs - life.offsetMs) <= CLOCK_TOLERANCE_MS) return;
  life.offsetMs = offsetMs;
  life.lastStampMs = 0;
  life.corrected = true;
};

export const deliver = ({ options, life, work }: Pick<Parts, "options" | "life" | "work">, item: Delivered, channel: "socket" | "poll"): void => {
  if (isOver(life)) return;
  options.on?.delivered?.(item.command.commandId, channel, item);
  work.deliver(item);
};
