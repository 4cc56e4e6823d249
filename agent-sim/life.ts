// The life of an agent between connections: what it knows of the gateway, how a session begins and ends, when it comes back.
import { type AckResult, type AgentIdentity, CLOSE, type DeliveredCommand } from "../protocol/index.ts";
import type { Acks } from "./acks.ts";
import type { Handlers } from "./handlers.ts";
import type { Http } from "./http.ts";
import { introduce } from "./introduction.ts";
import type { Journal } from "./journal.ts";
import type { Keys } from "./keys.ts";
import type { Polling } from "./polling.ts";
import type { Random } from "./random.ts";
import { afterEnd, backoffMs, type End, isRefusedSecret, type ReconnectTimes, type Verdict } from "./reconnect.ts";
import { openSession, type ReadyData, type Session, type WelcomeData } from "./session.ts";
import type { Sign } from "./signing.ts";
import type { Time } from "./time.ts";
import type { Work } from "./work.ts";

const SAFETY_POLL_MS = 15 * 60_000;
const SUPERSEDED_WINDOW_MS = 10 * 60_000;
/** A clock this close to the gateway's is left alone: the difference may be the way of the message. */
const CLOCK_TOLERANCE_MS = 1_000;

export type AgentPhase = "idle" | "connecting" | "ready" | "waiting" | "halted" | "polling" | "stopped";

export interface AgentEvents {
  ready?(): void;
  /** The session or the attempt is over; null means: waits for an operator. */
  away?(end: End, reconnectInMs: number | null): void;
  delivered?(commandId: string, channel: "socket" | "poll", item: DeliveredCommand): void;
  executed?(commandId: string, type: string): void;
  settled?(result: AckResult): void;
  /** The gateway says on reconnecting that it owes no answer: its ack_ok was lost on the way. */
  forgotten?(commandId: string): void;
  heartbeat?(roundTripMs: number): void;
  polled?(): void;
  alarm?(text: string): void;
}

export interface AgentOptions {
  readonly url: string;
  readonly deviceId: string;
  readonly identity: AgentIdentity;
  /** Where its secrets are kept; default: in memory, beginning with that of the identity. */
  readonly keys?: Keys;
  readonly fingerprint?: string;
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
  readonly bootId?: string;
  readonly on?: AgentEvents;
}

/** What changes over the life of an agent. */
export interface Life {
  phase: AgentPhase;
  session: Session | null;
  channel: "socket" | "poll" | null;
  offsetMs: number;
  lastStampMs: number;
  corrected: boolean;
  attempt: number;
  drainMs: number | null;
  superseded: number[];
  times: ReconnectTimes;
  pollMs: number;
  maxOutputBytes: number;
  maxInFlight: number;
  revivedByPoll: boolean;
  cancelReconnect: () => void;
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
  life.lastStampMs = Math.max(serverNowMs(options, life), life.lastStampMs + 1);
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

const becomeReady = (parts: Parts, session: Session, { reconcile }: ReadyData): void => {
  const { life, acks, work, polling, options } = parts;
  life.phase = "ready";
  life.channel = "socket";
  life.cancelStable = options.time.after(life.times.stableAfterSec * 1_000, () => {
    life.attempt = 0;
  });
  for (const { commandId, action } of reconcile) {
    if (action === "stop") work.cancel(commandId, "canceled while the agent was away");
    if (action !== "forget") continue;
    acks.forget(commandId);
    options.journal.settle(commandId);
    options.on?.forgotten?.(commandId);
  }
  acks.use(session.ack);
  polling.every(SAFETY_POLL_MS);
  options.on?.ready?.();
};

const takeWelcome = ({ options, life, keys }: Parts, welcome: WelcomeData): void => {
  keys.confirmed(life.secretInUse);
  life.times = welcome.reconnect;
  life.pollMs = welcome.poll.intervalSec * 1_000;
  life.maxOutputBytes = welcome.limits.maxOutputBytes;
  correctClock(options, life, Date.parse(welcome.serverTime));
};

const judge = ({ options, life, keys }: Parts, end: End): Verdict => {
  const now = options.time.elapsedMs();
  if (end.kind === "closed" && end.code === CLOSE.superseded.code) life.superseded = [...life.superseded.filter((at) => now - at < SUPERSEDED_WINDOW_MS), now];
  if (end.kind === "refused" && end.reason === "timestamp_skew" && end.serverTimeMs !== null) correctClock(options, life, end.serverTimeMs);
  const hasAnother = isRefusedSecret(end) && keys.refused(life.secretInUse);
  return afterEnd(end, {
    hasAnother,
    attempt: life.attempt,
    times: life.times,
    pollMs: life.pollMs,
    drainMs: life.drainMs,
    superseded: life.superseded.length,
    corrected: life.corrected,
    random: options.random,
  });
};

const goAway = (parts: Parts, end: End): void => {
  const { life, acks, polling, options } = parts;
  life.session = null;
  life.cancelStable();
  if (isOver(life)) return;
  acks.use(null);
  life.channel = null;
  const verdict = judge(parts, end);
  life.attempt += 1;
  life.drainMs = null;
  if (verdict.halveInFlight) life.maxInFlight = Math.max(1, Math.floor(life.maxInFlight / 2));
  life.revivedByPoll = verdict.revivedByPoll;
  polling.every(verdict.pollEveryMs);
  if (verdict.alarm !== null) options.on?.alarm?.(verdict.alarm);
  options.on?.away?.(end, verdict.reconnectInMs);
  comeBack(parts, verdict.reconnectInMs);
};

export const comeBack = (parts: Parts, inMs: number | null): void => {
  parts.life.phase = inMs === null ? "halted" : "waiting";
  if (inMs !== null) parts.life.cancelReconnect = parts.options.time.after(inMs, () => connect(parts));
};

const connect = (parts: Parts): void => {
  const { options, life, work, acks } = parts;
  life.phase = "connecting";
  life.corrected = false;
  life.secretInUse = options.identity.secret;
  const session = openSession({
    url: options.url,
    identity: options.identity,
    sign: parts.sign,
    time: options.time,
    random: options.random,
    heartbeatSec: options.heartbeatSec ?? null,
    serverNowMs: () => serverNowMs(options, life),
    stampMs: () => stampMs(options, life),
    introduce: () => introduce(parts),
    unsettledIds: () => options.journal.unsettled().map(({ commandId }) => commandId),
    on: {
      welcome: (welcome) => takeWelcome(parts, welcome),
      ready: (data) => becomeReady(parts, session, data),
      command: (item) => deliver(parts, item, "socket"),
      cancel: ({ commandId, reason }) => work.cancel(commandId, reason ?? ""),
      acked: acks.answered,
      heartbeat: (roundTripMs, resend) => {
        options.on?.heartbeat?.(roundTripMs);
        resend.forEach(work.retell);
      },
      config: ({ reconnect, poll, limits }) => {
        life.times = reconnect ?? life.times;
        life.pollMs = poll ? poll.intervalSec * 1_000 : life.pollMs;
        life.maxOutputBytes = limits?.maxOutputBytes ?? life.maxOutputBytes;
      },
      drain: ({ reconnectAfterMs }) => {
        life.drainMs = reconnectAfterMs;
      },
      end: (end) => goAway(parts, end),
    },
  });
  life.session = session;
};

export const deliver = ({ options, life, work }: Pick<Parts, "options" | "life" | "work">, item: DeliveredCommand, channel: "socket" | "poll"): void => {
  if (isOver(life)) return;
  options.on?.delivered?.(item.command.commandId, channel, item);
  work.deliver(item);
};

/** A poll was answered: REST carries acks while there is no socket, and an agent that was told to ask for the reason may try again. */
export const reached = (parts: Parts): void => {
  const { life, acks, polling, options } = parts;
  if (isOver(life)) return;
  if (life.channel === null) {
    life.channel = "poll";
    acks.use(polling.ack);
  }
  options.on?.polled?.();
  if (life.phase === "halted" && life.revivedByPoll) comeBack(parts, backoffMs(life.attempt, life.times, options.random));
};
