// An agent's options, events and state across all sessions, and the functions that several files share.
import type { AgentIdentity } from "../../protocol/index.ts";
import type { AckSender } from "./ack-sender.ts";
import type { Executor } from "./executor.ts";
import type { AckAnswer, Delivered } from "./frames.ts";
import type { CommandHandlers } from "./handlers.ts";
import type { Http } from "./http.ts";
import type { AgentMachine } from "./machine.ts";
import type { AgentPlan } from "./plan.ts";
import type { Polling } from "./polling.ts";
import type { SessionEnd } from "./reconnect.ts";
import type { Session } from "./session.ts";
import type { Sign } from "./signing.ts";
import type { Journal } from "./state/journal.ts";
import type { Keys } from "./state/keys.ts";
import type { Random } from "./timing/random.ts";
import type { Time } from "./timing/time.ts";

/** A smaller clock difference is ignored: it may be network delay. */
const CLOCK_TOLERANCE_MS = 1_000;
/** A machine without a clock battery starts in 1970, which the gateway rejects as a timestamp. It refuses this one too, but tells the right time. */
const EARLIEST_STAMP_MS = Date.UTC(2000, 0);

export type AgentPhase = "idle" | "connecting" | "ready" | "waiting" | "halted" | "polling" | "stopped";

export interface AgentEvents {
  ready?(): void;
  /** The session or the attempt to connect ended; null: the agent waits until REST accepts it. */
  away?(end: SessionEnd, reconnectInMs: number | null): void;
  delivered?(commandId: string, channel: "socket" | "poll", item: Delivered): void;
  executed?(commandId: string, type: string): void;
  settled?(answer: AckAnswer): void;
  /** On reconnect the gateway said `forget`: it needs no more acks of this command. */
  forgotten?(commandId: string): void;
  heartbeat?(roundTripMs: number): void;
  polled?(): void;
  alarm?(text: string): void;
}

export interface AgentOptions {
  readonly url: string;
  /** The socket's URL from pairing; default: below `url`. */
  readonly socketUrl?: string | undefined;
  readonly deviceId: string;
  readonly identity: AgentIdentity;
  /** Storage of its secrets; default: in memory, starting with the identity's. */
  readonly keys?: Keys;
  readonly fingerprint?: string;
  /** Identifies this process to the gateway; default: random. */
  readonly instanceId?: string;
  /** The process before it on this machine, which has ended: polls take its place at once. */
  readonly formerInstanceId?: string | undefined;
  readonly journal: Journal;
  readonly handlers: CommandHandlers;
  readonly http: Http;
  readonly time: Time;
  readonly random: Random;
  /** `poll`: never opens a socket. */
  readonly mode?: "socket" | "poll";
  /** The first connect waits a random time within this window (default 30 s), so that machines that start together connect apart. */
  readonly firstWindowMs?: number;
  readonly heartbeatSec?: number | null;
  /** 2: signs method, path, query and a nonce too. Default 1. */
  readonly signatureVersion?: 1 | 2;
  readonly maxInFlight?: number;
  /** The capabilities to announce; default: all. Without `inflight.v1` the agent lists no commands. */
  readonly capabilities?: readonly string[];
  readonly bootId?: string;
  /** What the agent says of its machine; default: the one that it runs on. */
  readonly machine?: AgentMachine | undefined;
  readonly on?: AgentEvents;
}

/** The mutable state of an agent. */
export interface AgentState {
  phase: AgentPhase;
  /** The session that carries acks and commands. */
  session: Session | null;
  /** During a handoff, the session that replaces `session` once it is ready. */
  successor: Session | null;
  channel: "socket" | "poll" | null;
  offsetMs: number;
  lastStampMs: number;
  corrected: boolean;
  correctedBefore: boolean;
  attempt: number;
  drainWaitMs: number | null;
  plan: AgentPlan;
  cancelReconnect: () => void;
  cancelHandoff: () => void;
  cancelStable: () => void;
  cancelHeartbeat: () => void;
  cancelRotation: () => void;
  secretInUse: string;
}

export interface AgentContext {
  readonly options: AgentOptions;
  readonly state: AgentState;
  readonly acks: AckSender;
  readonly executor: Executor;
  readonly polling: Polling;
  readonly instanceId: string;
  readonly keys: Keys;
  readonly sign: Sign;
}

export const serverNowMs = ({ time }: AgentOptions, state: AgentState): number => time.wallMs() + state.offsetMs;
/** A v1 signature covers only body and time, so every request gets a timestamp of its own; otherwise one could count as a replay of another. */
export const stampMs = (options: AgentOptions, state: AgentState): number => {
  state.lastStampMs = Math.max(serverNowMs(options, state), state.lastStampMs + 1, EARLIEST_STAMP_MS);
  return state.lastStampMs;
};
export const isOver = ({ phase }: AgentState): boolean => phase === "stopped";

/**
 * Adjusts the offset to the gateway's clock, and forgets the previous timestamp if it was later than that: otherwise every later one would be wrong, too,
 * for as long as the clock was ahead. The machine's clock stays as it is.
 */
export const correctClock = ({ time }: AgentOptions, state: AgentState, serverTimeMs: number): void => {
  if (Number.isNaN(serverTimeMs)) return;
  const offsetMs = serverTimeMs - time.wallMs();
  const isNew = Math.abs(offsetMs - state.offsetMs) > CLOCK_TOLERANCE_MS;
  const wasAhead = state.lastStampMs > serverTimeMs + CLOCK_TOLERANCE_MS;
  if (isNew) state.offsetMs = offsetMs;
  if (isNew || wasAhead) state.lastStampMs = 0;
  state.corrected ||= isNew || wasAhead;
};

export const deliver = (
  { options, state, executor }: Pick<AgentContext, "options" | "state" | "executor">,
  item: Delivered,
  channel: "socket" | "poll",
): void => {
  if (isOver(state)) return;
  options.on?.delivered?.(item.command.commandId, channel, item);
  executor.deliver(item);
};
