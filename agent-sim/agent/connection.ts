// How an agent's sessions begin, hand over and end, and when it comes back after one.
import { CLOSE } from "../../protocol/index.ts";
import { heldBy, introduce } from "./introduction.ts";
import { correctClock, deliver, isOver, type Parts, serverNowMs, stampMs } from "./life.ts";
import { adjustPlan } from "./plan.ts";
import { afterEnd, backoffMs, type End, isRefusedSecret, type Verdict } from "./reconnect.ts";
import { openSession, type ReadyData, type Session, type WelcomeData } from "./session.ts";
import { socketUrl } from "./socket.ts";

const becomeReady = (parts: Parts, session: Session, { reconcile }: ReadyData): void => {
  const { life, acks, work, polling, options } = parts;
  const before = life.session;
  if (session === life.heir) {
    life.heir = null;
    life.session = session;
  }
  life.cancelStable();
  life.phase = "ready";
  life.channel = "socket";
  life.cancelStable = options.time.after(life.plan.reconnect.stableAfterSec * 1_000, () => {
    life.attempt = 0;
  });
  // Any other word than these two means that the command is wanted still.
  for (const { commandId, action } of reconcile) {
    if (action === "stop") work.cancel(commandId, "canceled while the agent was away");
    if (action !== "forget") continue;
    acks.forget(commandId);
    work.settle(commandId);
    options.on?.forgotten?.(commandId);
  }
  acks.use(session.ack);
  polling.every(life.plan.poll.safetySec * 1_000);
  options.on?.ready?.();
  if (before === null || before === session) return;
  // Everything goes over the new session by now; the gateway may have closed this one already.
  before.goodbye({ reason: "handoff", expectBackSec: 0 });
  before.close(CLOSE.normal.code, "handoff");
};

const takeWelcome = ({ options, life, keys }: Parts, welcome: WelcomeData): void => {
  keys.confirmed(life.secretInUse);
  life.plan = adjustPlan(life.plan, welcome);
  correctClock(options, life, Date.parse(welcome.serverTime));
};

const judge = ({ options, life, keys }: Parts, end: End): Verdict => {
  if (end.kind === "refused" && end.reason === "timestamp_skew" && end.serverTimeMs !== null) correctClock(options, life, end.serverTimeMs);
  const hasAnother = isRefusedSecret(end) && keys.refused(life.secretInUse);
  return afterEnd(end, {
    hasAnother,
    attempt: life.attempt,
    times: life.plan.reconnect,
    pollMs: life.plan.poll.intervalSec * 1_000,
    drainMs: life.drainMs,
    corrected: life.corrected,
    random: options.random,
  });
};

/** A session in place is lost: nothing can be said until there is another way. */
const fallSilent = ({ life, acks }: Parts): void => {
  life.session = null;
  life.channel = null;
  life.cancelStable();
  if (!isOver(life)) acks.use(null);
};

/** The attempt to hand over came to nothing. The session in place goes on meanwhile, until the gateway closes it. */
const heirEnded = (parts: Parts, end: End): void => {
  const { life, options } = parts;
  life.heir = null;
  if (isOver(life)) return;
  if (life.session === null) {
    goAway(parts, end);
    return;
  }
  const { reconnectInMs } = judge(parts, end);
  if (reconnectInMs !== null) life.cancelHandoff = options.time.after(reconnectInMs, () => handOver(parts));
};

const ended = (parts: Parts, session: Session, end: End): void => {
  const { life } = parts;
  if (session === life.heir) {
    heirEnded(parts, end);
    return;
  }
  // One that was handed over owes nothing any more.
  if (session !== life.session) return;
  life.cancelHandoff();
  fallSilent(parts);
  if (isOver(life)) return;
  if (life.heir === null) goAway(parts, end);
  else life.phase = "connecting";
};

const goAway = (parts: Parts, end: End): void => {
  const { life, polling, options } = parts;
  const verdict = judge(parts, end);
  life.attempt += 1;
  life.drainMs = null;
  polling.every(verdict.pollEveryMs);
  if (verdict.alarm !== null) options.on?.alarm?.(verdict.alarm);
  options.on?.away?.(end, verdict.reconnectInMs);
  comeBack(parts, verdict.reconnectInMs);
};

/** null: REST is asked first, soon and then at the pace of its polls; `reached` goes on from there. */
export const comeBack = (parts: Parts, inMs: number | null): void => {
  const { life, polling, options } = parts;
  life.phase = inMs === null ? "halted" : "waiting";
  life.cancelReconnect =
    inMs === null
      ? options.time.after(backoffMs(life.attempt, life.plan.reconnect, options.random), () => polling.now())
      : options.time.after(inMs, () => connect(parts));
};

const connect = (parts: Parts): void => {
  parts.life.phase = "connecting";
  parts.life.session = open(parts, null);
};

/** Make before break: the new session takes over with its `ready`, and the old one serves until then. */
const handOver = (parts: Parts): void => {
  const { life } = parts;
  if (isOver(life) || life.session === null || life.heir !== null) return;
  life.heir = open(parts, life.session.id);
};

const open = (parts: Parts, from: string | null): Session => {
  const { options, life, work, acks } = parts;
  life.corrected = false;
  life.secretInUse = options.identity.secret;
  const session = openSession({
    url: options.socketUrl ?? socketUrl(options.url),
    identity: options.identity,
    sign: parts.sign,
    time: options.time,
    random: options.random,
    heartbeatSec: options.heartbeatSec ?? null,
    plan: () => life.plan,
    serverNowMs: () => serverNowMs(options, life),
    stampMs: () => stampMs(options, life),
    introduce: () => introduce(parts, from),
    heldIds: () => heldBy(options)?.map(({ commandId }) => commandId),
    on: {
      welcome: (welcome) => takeWelcome(parts, welcome),
      ready: (data) => becomeReady(parts, session, data),
      command: (item) => deliver(parts, item, "socket"),
      cancel: ({ commandId, reason }) => work.cancel(commandId, reason ?? ""),
      acked: acks.answered,
      heartbeat: (roundTripMs, resend) => {
        options.on?.heartbeat?.(roundTripMs);
        for (const commandId of resend) work.retell(commandId);
      },
      config: (change) => {
        life.plan = adjustPlan(life.plan, change);
      },
      drain: ({ handoff, reconnectAfterMs }) => {
        if (session !== life.session) return;
        if (handoff) handOver(parts);
        else life.drainMs = reconnectAfterMs;
      },
      end: (end) => ended(parts, session, end),
    },
  });
  return session;
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
  if (life.phase === "halted") comeBack(parts, backoffMs(life.attempt, life.plan.reconnect, options.random));
};
