// The reference agent: keeps one socket, falls back to polling, runs each command once and tells until it is heard.
import { randomUUID } from "node:crypto";
import type { z } from "zod";
import { type AgentIdentity, CLOSE, type Goodbye } from "../../protocol/index.ts";
import { createAcks } from "./acks.ts";
import { comeBack, reached } from "./connection.ts";
import type { AckAnswer } from "./frames.ts";
import { createMemoryKeys, type Keys } from "./keys.ts";
import { type AgentOptions, type AgentPhase, correctClock, deliver, isOver, type Life, type Parts, serverNowMs, stampMs } from "./life.ts";
import { DEFAULT_PLAN } from "./plan.ts";
import { createPolling } from "./polling.ts";
import { createRotation } from "./rotation.ts";
import { signer } from "./signing.ts";
import { nothing, until } from "./time.ts";
import { createWork } from "./work.ts";

const POLLING_HEARTBEAT_SEC = 30;
const STOP_MS = 2_000;

export interface Agent {
  start(): void;
  /** Lets running commands end (for two seconds), says goodbye and closes. */
  stop(goodbye?: z.input<typeof Goodbye>): Promise<void>;
  readonly state: AgentPhase;
  /** Words that the gateway has not confirmed. */
  readonly unconfirmed: number;
  /** How far the gateway's clock is ahead of this machine's. */
  readonly clockOffsetMs: number;
}

const pollOnly = ({ options, life, polling }: Parts): void => {
  life.phase = "polling";
  const beat = (): void => {
    polling.heartbeat();
    life.cancelBeat = options.time.after((options.heartbeatSec ?? POLLING_HEARTBEAT_SEC) * 1_000, beat);
  };
  life.cancelReconnect = options.time.after(options.random() * (options.firstWindowMs ?? life.plan.reconnect.firstWindowMs), () => {
    polling.now();
    polling.every(life.plan.poll.intervalSec * 1_000);
    beat();
  });
};

const stop = async (parts: Parts, goodbye: z.input<typeof Goodbye>): Promise<void> => {
  const { life, acks, work, polling, options } = parts;
  if (isOver(life)) return;
  life.phase = "stopped";
  life.cancelReconnect();
  life.cancelHandoff();
  life.heir?.close(CLOSE.goingAway.code, goodbye.reason);
  life.cancelBeat();
  life.cancelRotation();
  await work.rest(STOP_MS);
  await until(options.time, () => acks.waiting === 0 || life.channel === null, { everyMs: 20, withinMs: STOP_MS });
  polling.every(null);
  life.session?.goodbye({ reason: goodbye.reason, expectBackSec: goodbye.expectBackSec ?? 0 });
  life.session?.close(CLOSE.normal.code, goodbye.reason);
  life.cancelStable();
  acks.use(null);
};

/** The identity as it is now: a rotation changes its secret. */
const identityOf = ({ identity: { agentId, tenantId } }: AgentOptions, keys: Keys): AgentIdentity =>
  // Enumerable like the others, so that a copy holds the secret of its moment.
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
  const life: Life = {
    phase: "idle",
    session: null,
    heir: null,
    channel: null,
    offsetMs: 0,
    lastStampMs: 0,
    corrected: false,
    attempt: 0,
    drainMs: null,
    plan: DEFAULT_PLAN,
    cancelReconnect: nothing,
    cancelHandoff: nothing,
    cancelStable: nothing,
    cancelBeat: nothing,
    cancelRotation: nothing,
    secretInUse: "",
  };
  const now = (): number => serverNowMs(options, life);
  const settled = (answer: AckAnswer): void => {
    work.settle(answer.commandId);
    on?.settled?.(answer);
  };
  const acks = createAcks({ time, onSettled: settled, resend: () => life.plan.ack });
  const rotation = createRotation({ keys, http, deviceId, identity, sign, time, random, stampMs: () => stampMs(options, life) });
  const work = createWork({
    journal,
    handlers: { ...options.handlers, "svc.rotate-secret": rotation.handler },
    acks,
    time,
    serverNowMs: now,
    maxOutputBytes: () => life.plan.limits.maxOutputBytes,
    onExecute: (commandId, type) => on?.executed?.(commandId, type),
    onAlarm: on?.alarm,
  });
  const instanceId = given.instanceId ?? randomUUID();
  const polling = createPolling({
    http,
    deviceId,
    identity,
    instanceId,
    sign,
    time,
    random,
    stampMs: () => stampMs(options, life),
    on: {
      command: (item) => deliver({ options, life, work }, item, "poll"),
      acked: acks.answered,
      cancel: (commandId) => work.cancel(commandId, "named by a poll"),
      reached: () => reached(parts),
      proven: keys.confirmed,
      disproven: keys.refused,
      skewed: (serverTimeMs) => correctClock(options, life, serverTimeMs),
    },
  });
  const parts: Parts = { options, life, keys, sign, acks, work, polling, instanceId };
  return {
    start: () => {
      work.resume();
      life.cancelRotation = rotation.resume();
      if (options.mode === "poll") return pollOnly(parts);
      comeBack(parts, random() * (options.firstWindowMs ?? life.plan.reconnect.firstWindowMs));
    },
    stop: (goodbye = { reason: "shutdown" }) => stop(parts, goodbye),
    get state() {
      return life.phase;
    },
    get unconfirmed() {
      return acks.waiting;
    },
    get clockOffsetMs() {
      return life.offsetMs;
    },
  };
};
