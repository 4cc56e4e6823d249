// Begins, hands over and ends an agent's sessions, and schedules reconnects.
import { CLOSE } from "../../protocol/index.ts";
import { type AgentContext, correctClock, deliver, isOver, serverNowMs, stampMs } from "./agent-context.ts";
import { helloOf, inFlightOf } from "./hello.ts";
import { thisMachine } from "./machine.ts";
import { adjustPlan } from "./plan.ts";
import { afterEnd, backoffMs, isCorrection, isRefusedSecret, type ReconnectDecision, type SessionEnd } from "./reconnect.ts";
import { openSession, type ReadyData, type Session, type WelcomeData } from "./session.ts";
import { socketUrl } from "./socket.ts";
import { between } from "./timing/random.ts";

type ReconnectTime = Pick<ReconnectDecision, "reconnectInMs"> & Partial<Pick<ReconnectDecision, "askInMs">>;

const becomeReady = (context: AgentContext, session: Session, { reconcile }: ReadyData): void => {
  const { state, acks, executor, polling, options } = context;
  const before = state.session;
  if (session === state.successor) {
    state.successor = null;
    state.session = session;
  }
  state.cancelStable();
  state.phase = "ready";
  state.channel = "socket";
  state.cancelStable = options.time.after(state.plan.reconnect.stableAfterSec * 1_000, () => {
    state.attempt = 0;
  });
  // Any other action, known or not, means: continue.
  for (const { commandId, action } of reconcile) {
    if (action === "stop") executor.cancel(commandId, "canceled while the agent was away");
    if (action !== "forget") continue;
    acks.forget(commandId);
    executor.settle(commandId);
    options.on?.forgotten?.(commandId);
  }
  acks.use(session.ack);
  polling.every(state.plan.poll.safetySec * 1_000);
  options.on?.ready?.();
  if (before === null || before === session) return;
  // The new session carries everything now. The gateway may already have closed the old one.
  before.goodbye({ reason: "handoff", expectBackSec: 0 });
  before.close(CLOSE.normal.code, "handoff");
};

const applyWelcome = ({ options, state, keys }: AgentContext, welcome: WelcomeData): void => {
  keys.confirmed(state.secretInUse);
  state.plan = adjustPlan(state.plan, welcome);
  correctClock(options, state, Date.parse(welcome.serverTime));
};

const decide = ({ options, state, keys }: AgentContext, end: SessionEnd): ReconnectDecision => {
  if (end.kind === "refused" && end.reason === "timestamp_skew" && end.serverTimeMs !== null) correctClock(options, state, end.serverTimeMs);
  const hasAnother = isRefusedSecret(end) && keys.refused(state.secretInUse);
  return afterEnd(end, {
    hasAnother,
    attempt: state.attempt,
    times: state.plan.reconnect,
    pollMs: state.plan.poll.intervalSec * 1_000,
    drainWaitMs: state.drainWaitMs,
    corrected: state.corrected,
    correctedBefore: state.correctedBefore,
    random: options.random,
  });
};

/** The current session is gone: acks wait for the next channel. */
const loseChannel = ({ state, acks }: AgentContext): void => {
  state.session = null;
  state.channel = null;
  state.cancelStable();
  if (!isOver(state)) acks.use(null);
};

/** The handoff failed. The current session continues until the gateway closes it, and the handoff is tried again. */
const successorEnded = (context: AgentContext, end: SessionEnd): void => {
  const { state, options } = context;
  state.successor = null;
  if (isOver(state)) return;
  if (state.session === null) {
    disconnected(context, end);
    return;
  }
  const { reconnectInMs } = decide(context, end);
  if (reconnectInMs !== null) state.cancelHandoff = options.time.after(reconnectInMs, () => startHandoff(context));
};

const sessionEnded = (context: AgentContext, session: Session, end: SessionEnd): void => {
  const { state } = context;
  if (session === state.successor) {
    successorEnded(context, end);
    return;
  }
  // A session that was handed over needs no reconnect.
  if (session !== state.session) return;
  state.cancelHandoff();
  loseChannel(context);
  if (isOver(state)) return;
  if (state.successor === null) disconnected(context, end);
  else state.phase = "connecting";
};

const disconnected = (context: AgentContext, end: SessionEnd): void => {
  const { state, polling, options } = context;
  const decision = decide(context, end);
  state.attempt += 1;
  state.correctedBefore = isCorrection(end, state);
  state.drainWaitMs = null;
  polling.every(decision.pollEveryMs);
  if (decision.alarm !== null) options.on?.alarm?.(decision.alarm);
  options.on?.away?.(end, decision.reconnectInMs);
  scheduleReconnect(context, decision);
};

/** An agent that does not reconnect by itself asks REST; `reached` schedules the reconnect once a poll succeeds. */
export const scheduleReconnect = (context: AgentContext, { reconnectInMs, askInMs = 0 }: ReconnectTime): void => {
  const { state, polling, options } = context;
  state.phase = reconnectInMs === null ? "halted" : "waiting";
  state.cancelReconnect =
    reconnectInMs === null ? options.time.after(askInMs ?? 0, () => polling.now()) : options.time.after(reconnectInMs, () => connect(context));
};

const connect = (context: AgentContext): void => {
  context.state.phase = "connecting";
  context.state.session = open(context, null);
};

/** Make before break: the old session serves until the new one is ready. */
const startHandoff = (context: AgentContext): void => {
  const { state } = context;
  if (isOver(state) || state.session === null || state.successor !== null) return;
  state.successor = open(context, state.session.id);
};

const open = (context: AgentContext, from: string | null): Session => {
  const { options, state, executor, acks } = context;
  state.corrected = false;
  state.secretInUse = options.identity.secret;
  const session = openSession({
    url: options.socketUrl ?? socketUrl(options.url),
    identity: options.identity,
    sign: context.sign,
    time: options.time,
    random: options.random,
    heartbeatSec: options.heartbeatSec ?? null,
    plan: () => state.plan,
    serverNowMs: () => serverNowMs(options, state),
    stampMs: () => stampMs(options, state),
    hello: () => helloOf(context, from),
    metrics: (options.machine ?? thisMachine).metrics,
    inFlightIds: () => inFlightOf(options)?.map(({ commandId }) => commandId),
    on: {
      welcome: (welcome) => applyWelcome(context, welcome),
      ready: (data) => becomeReady(context, session, data),
      command: (item) => deliver(context, item, "socket"),
      cancel: ({ commandId, reason }) => executor.cancel(commandId, reason ?? ""),
      acked: acks.answered,
      heartbeat: (roundTripMs, resend) => {
        options.on?.heartbeat?.(roundTripMs);
        for (const commandId of resend) executor.reportAgain(commandId);
      },
      config: (change) => {
        state.plan = adjustPlan(state.plan, change);
      },
      drain: ({ handoff, reconnectAfterMs }) => {
        if (session !== state.session) return;
        if (handoff) startHandoff(context);
        else state.drainWaitMs = reconnectAfterMs;
      },
      end: (end) => sessionEnded(context, session, end),
    },
  });
  return session;
};

/** A poll succeeded: without a socket, acks now go over REST, and a halted agent may connect again. */
export const reached = (context: AgentContext): void => {
  const { state, acks, polling, options } = context;
  if (isOver(state)) return;
  if (state.channel === null) {
    state.channel = "poll";
    acks.use(polling.ack);
  }
  options.on?.polled?.();
  if (state.phase === "halted") scheduleReconnect(context, { reconnectInMs: backoffMs(state.attempt, state.plan.reconnect, options.random) });
};

/** A halted agent asks again: after the wait that the gateway named, or with backoff if nobody answered. Without either its interval counts. */
export const missed = ({ state, polling, options: { time, random } }: AgentContext, waitMs: number | null): void => {
  if (state.phase !== "halted") return;
  if (waitMs === null) state.attempt += 1;
  state.cancelReconnect();
  const delayMs = waitMs === null ? backoffMs(state.attempt, state.plan.reconnect, random) : waitMs * between(random, 1, 1.1);
  state.cancelReconnect = time.after(delayMs, polling.now);
};
