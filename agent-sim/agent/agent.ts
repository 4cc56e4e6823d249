// The reference agent: keeps one socket, polls without one, runs each command once, and sends each result until it is confirmed.
import { randomUUID } from "node:crypto";
import type { z } from "zod";
import { type AgentIdentity, CLOSE, type Goodbye } from "../../protocol/index.ts";
import { createAckSender } from "./ack-sender.ts";
import {
  type AgentContext,
  type AgentOptions,
  type AgentPhase,
  type AgentState,
  correctClock,
  deliver,
  isOver,
  serverNowMs,
  stampMs,
} from "./agent-context.ts";
import type { HttpAnswer } from "./answers.ts";
import { missed, reached, scheduleReconnect } from "./connection.ts";
import { createExecutor } from "./executor.ts";
import type { AckAnswer } from "./frames.ts";
import type { HttpCall } from "./http.ts";
import { thisMachine } from "./machine.ts";
import { DEFAULT_AGENT_PLAN } from "./plan.ts";
import { createPolling } from "./polling.ts";
import { createRotation } from "./rotation.ts";
import { signer } from "./signing.ts";
import { createMemoryKeys, type Keys } from "./state/keys.ts";
import { jittered } from "./timing/random.ts";
import { noop, until } from "./timing/time.ts";

const POLLING_HEARTBEAT_SEC = 30;
const HEARTBEAT_JITTER_PCT = 10;
const STOP_MS = 2_000;

export interface Agent {
  start(): void;
  /** A call that is signed as the agent, for its own device. A text is sent unchanged, as NDJSON. Rejects with NoAnswer unless the gateway itself answers. */
  call(method: HttpCall["method"], path: string, body?: unknown, more?: Pick<HttpCall, "headers" | "expects" | "withinMs">): Promise<HttpAnswer>;
  /** The headers that sign a request without a body, for connections that are no calls. */
  signed(method: string, target: string): Record<string, string>;
  /** Gives running commands two seconds to end, says goodbye and closes. */
  stop(goodbye?: z.input<typeof Goodbye>): Promise<void>;
  /** Ends as a process that is killed: at once, and without a word. What runs is the caller's to end. */
  kill(): void;
  readonly state: AgentPhase;
  /** Number of acks that the gateway has not confirmed. */
  readonly unconfirmed: number;
  /** Gateway clock minus this machine's clock. */
  readonly clockOffsetMs: number;
}

const startPollOnly = ({ options, state, polling }: AgentContext): void => {
  state.phase = "polling";
  const sendHeartbeat = (): void => {
    polling.heartbeat();
    const { heartbeatSec, random, time } = options;
    state.cancelHeartbeat = time.after(jittered(random, (heartbeatSec ?? POLLING_HEARTBEAT_SEC) * 1_000, HEARTBEAT_JITTER_PCT), sendHeartbeat);
  };
  state.cancelReconnect = options.time.after(options.random() * (options.firstWindowMs ?? state.plan.reconnect.firstWindowMs), () => {
    polling.now();
    polling.every(state.plan.poll.intervalSec * 1_000);
    sendHeartbeat();
  });
};

const beginNothing = (state: AgentState): void => {
  state.phase = "stopped";
  state.cancelReconnect();
  state.cancelHandoff();
  state.cancelHeartbeat();
  state.cancelRotation();
};

const stop = async (context: AgentContext, goodbye: z.input<typeof Goodbye>): Promise<void> => {
  const { state, acks, executor, polling, options } = context;
  if (isOver(state)) return;
  beginNothing(state);
  state.successor?.close(CLOSE.goingAway.code, goodbye.reason);
  await executor.whenIdle(STOP_MS);
  await until(options.time, () => acks.waiting === 0 || state.channel === null, { everyMs: 20, withinMs: STOP_MS });
  polling.every(null);
  state.session?.goodbye({ reason: goodbye.reason, expectBackSec: goodbye.expectBackSec ?? 0 });
  state.session?.close(CLOSE.normal.code, goodbye.reason);
  state.cancelStable();
  acks.use(null);
};

const kill = ({ state, acks, polling }: AgentContext): void => {
  beginNothing(state);
  state.cancelStable();
  polling.every(null);
  acks.use(null);
  state.successor?.cut();
  state.session?.cut();
};

/** An identity whose secret follows rotations. */
const identityOf = ({ identity: { agentId, tenantId } }: AgentOptions, keys: Keys): AgentIdentity =>
  // The getter is enumerable, so a copy keeps the current secret.
  Object.freeze({
    agentId,
    tenantId,
    get secret() {
      return keys.secret;
    },
  });

export const createAgent = (given: AgentOptions): Agent => {
  const keys = given.keys ?? createMemoryKeys(given.identity.secret);
  const options = { ...given, keys, identity: identityOf(given, keys) };
  const sign = signer(options.signatureVersion ?? 1);
  const { time, random, journal, http, deviceId, identity, on } = options;
  const state: AgentState = {
    phase: "idle",
    session: null,
    successor: null,
    channel: null,
    offsetMs: 0,
    lastStampMs: 0,
    corrected: false,
    correctedBefore: false,
    attempt: 0,
    drainWaitMs: null,
    plan: DEFAULT_AGENT_PLAN,
    cancelReconnect: noop,
    cancelHandoff: noop,
    cancelStable: noop,
    cancelHeartbeat: noop,
    cancelRotation: noop,
    secretInUse: "",
  };
  const now = (): number => serverNowMs(options, state);
  const settled = (answer: AckAnswer): void => {
    executor.settle(answer.commandId);
    on?.settled?.(answer);
  };
  const acks = createAckSender({ time, onSettled: settled, resend: () => state.plan.ack });
  const rotation = createRotation({ keys, http, deviceId, identity, sign, time, random, stampMs: () => stampMs(options, state) });
  const executor = createExecutor({
    journal,
    handlers: { ...options.handlers, "svc.rotate-secret": rotation.handler },
    acks,
    time,
    serverNowMs: now,
    maxOutputBytes: () => state.plan.limits.maxOutputBytes,
    onExecute: (commandId, type) => on?.executed?.(commandId, type),
    onAlarm: on?.alarm,
  });
  const instanceId = given.instanceId ?? randomUUID();
  const polling = createPolling({
    http,
    deviceId,
    identity,
    instanceId,
    formerInstanceId: given.formerInstanceId,
    sign,
    time,
    random,
    metrics: (options.machine ?? thisMachine).metrics,
    stampMs: () => stampMs(options, state),
    on: {
      command: (item) => deliver({ options, state, executor }, item, "poll"),
      acked: acks.answered,
      cancel: (commandId) => executor.cancel(commandId, "requested by a poll"),
      reached: () => reached(context),
      interval: (intervalMs) => {
        // Beside a session, safety polls have an interval of their own.
        if (state.phase !== "ready") state.plan = { ...state.plan, poll: { ...state.plan.poll, intervalSec: intervalMs / 1_000 } };
      },
      missed: (waitMs) => missed(context, waitMs),
      secretAccepted: keys.confirmed,
      secretRefused: keys.refused,
      clockSkewed: (serverTimeMs) => correctClock(options, state, serverTimeMs),
    },
  });
  const context: AgentContext = { options, state, keys, sign, acks, executor, polling, instanceId };
  return {
    call: (method, path, given, more = {}) => {
      const isText = typeof given === "string";
      const body = given === undefined || isText ? given : JSON.stringify(given);
      const signed = sign(identity, { method, target: path, body: body ?? "" }, new Date(stampMs(options, state)));
      const headers = { ...more.headers, ...signed };
      return http.call({ ...more, method, path, headers, ...(body === undefined ? {} : { body }), ...(isText ? { type: "application/x-ndjson" } : {}) });
    },
    signed: (method, target) => sign(identity, { method, target, body: "" }, new Date(stampMs(options, state))),
    start: () => {
      executor.resume();
      state.cancelRotation = rotation.resume();
      if (options.mode === "poll") return startPollOnly(context);
      scheduleReconnect(context, { reconnectInMs: random() * (options.firstWindowMs ?? state.plan.reconnect.firstWindowMs) });
    },
    stop: (goodbye = { reason: "shutdown" }) => stop(context, goodbye),
    kill: () => kill(context),
    get state() {
      return state.phase;
    },
    get unconfirmed() {
      return acks.waiting;
    },
    get clockOffsetMs() {
      return state.offsetMs;
    },
  };
};
