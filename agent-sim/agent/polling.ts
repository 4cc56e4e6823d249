// Fetches due commands and sends acks by signed REST calls, at the interval that the gateway sets. For agents without a socket.
import { z } from "zod";
import type { AgentIdentity } from "../../protocol/index.ts";
import type { AgentAck } from "./ack-sender.ts";
import { ackRefusal, errorOf, givenWaitMs, type HttpAnswer, hasSucceeded, NoAnswer, refusesSecret, retryAfterMs, timeIfSkewed } from "./answers.ts";
import { AckAnswer, type Delivered, Polled } from "./frames.ts";
import type { Http } from "./http.ts";
import type { AgentMachine } from "./machine.ts";
import { SHORTEST_INTERVAL_MS } from "./plan.ts";
import type { Sign } from "./signing.ts";
import { createDueTimer } from "./timing/due-timer.ts";
import { jittered, type Random } from "./timing/random.ts";
import { noop, type Time } from "./timing/time.ts";

const POLL_LIMIT = 10;
const JITTER_PCT = 10;

export interface PollingDeps {
  readonly http: Http;
  readonly deviceId: string;
  readonly identity: AgentIdentity;
  /** This process, as in `hello`. */
  readonly instanceId: string;
  /** The process before it, which has ended. */
  readonly formerInstanceId?: string | undefined;
  readonly time: Time;
  readonly random: Random;
  readonly metrics: AgentMachine["metrics"];
  readonly sign: Sign;
  /** Timestamp for a signature; never the same twice. */
  readonly stampMs: () => number;
  readonly on: PollingEvents;
}

export interface PollingEvents {
  command(item: Delivered): void;
  acked(answer: AckAnswer, ref: string): void;
  cancel(commandId: string): void;
  /** The gateway answered a poll. */
  reached(): void;
  /** The gateway named the interval of polls without a session. */
  interval(intervalMs: number): void;
  /** A poll was in vain: the gateway named a wait, or null: nobody answered, or something else than the gateway did. */
  missed(waitMs: number | null): void;
  /** The gateway accepted or refused a signature with this secret. */
  secretAccepted(secret: string): void;
  secretRefused(secret: string): void;
  /** The gateway refused the timestamp and sent its own time. */
  clockSkewed(serverTimeMs: number): void;
}

export interface Polling {
  /** Polls at this interval from now on; null: never. The first poll comes after one interval. However often this is called, polls go on. */
  every(intervalMs: number | null): void;
  /** Polls once, immediately. */
  now(): void;
  ack(commandId: string, ack: AgentAck): string | null;
  /** Sends a heartbeat over REST, for an agent without a socket. */
  heartbeat(): void;
}

const Cancel = z.array(z.string()).default([]);
const Items = z.object({ data: z.array(Polled), cancel: Cancel });
const HeartbeatAnswer = z.object({ data: z.object({ cancel: Cancel }) });
const Result = z.object({ data: AckAnswer });

export const createPolling = ({ http, deviceId, identity, instanceId, formerInstanceId, sign, time, random, metrics, stampMs, on }: PollingDeps): Polling => {
  let everyMs: number | null = null;
  let notBeforeMs = 0;
  /** Another process with this identity is alive until then. Acks may still be sent. */
  let pollNotBeforeMs = 0;
  let polling = false;
  let sequence = 0;
  let cancelResume = noop;
  const instances = { "x-svc-instance-id": instanceId, ...(formerInstanceId === undefined ? {} : { "x-svc-instance-after": formerInstanceId }) };
  const path = `/v1/devices/${encodeURIComponent(deviceId)}`;

  const pausePolling = (waitMs: number): void => {
    pollNotBeforeMs = time.elapsedMs() + waitMs;
    cancelResume();
    if (everyMs === null) return;
    cancelResume = time.after(waitMs, () => {
      // The timer may fire a fraction of a millisecond early; without this reset the next poll would come an interval later.
      pollNotBeforeMs = 0;
      poll();
    });
  };
  const learn = (answer: HttpAnswer, secret: string): void => {
    const wait = retryAfterMs(answer);
    const { code } = errorOf(answer);
    if (wait !== null && code === "DUPLICATE_IDENTITY") pausePolling(wait);
    else if (wait !== null) notBeforeMs = time.elapsedMs() + wait;
    if (hasSucceeded(answer)) on.secretAccepted(secret);
    if (refusesSecret(answer)) on.secretRefused(secret);
    const serverTimeMs = timeIfSkewed(answer);
    if (serverTimeMs !== null) on.clockSkewed(serverTimeMs);
  };
  /** Resolves to null without an answer of the gateway; the next poll or resend tries again. */
  const call = async (method: "GET" | "POST", suffix: string, body = ""): Promise<HttpAnswer | null> => {
    if (time.elapsedMs() < notBeforeMs) return null;
    const { secret } = identity;
    const signed = sign({ ...identity, secret }, { method, target: path + suffix, body }, new Date(stampMs()));
    const headers = method === "GET" ? { ...signed, ...instances } : signed;
    const answer = await http.call({ method, path: path + suffix, headers, ...(method === "POST" ? { body } : {}) }).catch((error: unknown) => {
      if (error instanceof NoAnswer) return null;
      throw error;
    });
    if (answer) learn(answer, secret);
    return answer;
  };
  const fetchDue = async (): Promise<void> => {
    if (time.elapsedMs() < Math.max(pollNotBeforeMs, notBeforeMs)) return;
    const answer = await call("GET", `/commands?limit=${POLL_LIMIT}`);
    const found = answer && hasSucceeded(answer) ? Items.safeParse(answer.body).data : null;
    if (!answer || !found) {
      const waitMs = answer && retryAfterMs(answer);
      if (!answer || waitMs !== null) on.missed(waitMs);
      return;
    }
    const requestedMs = givenWaitMs(answer.headers["x-svc-poll-interval"]);
    if (everyMs !== null && requestedMs !== null && requestedMs > 0) {
      const intervalMs = Math.max(SHORTEST_INTERVAL_MS, requestedMs);
      on.interval(intervalMs);
      pollEvery(intervalMs);
    }
    on.reached();
    for (const item of found.data) on.command(item);
    found.cancel.forEach(on.cancel);
  };
  const poll = (): void => {
    if (polling) return;
    polling = true;
    void fetchDue().finally(() => {
      polling = false;
    });
  };
  const timer = createDueTimer(time, () => {
    poll();
    if (everyMs !== null) timer.within(jittered(random, everyMs, JITTER_PCT));
  });
  const pollEvery = (intervalMs: number): void => {
    const beforeMs = everyMs;
    everyMs = intervalMs;
    if (beforeMs === null || intervalMs < beforeMs) timer.within(jittered(random, intervalMs, JITTER_PCT));
    else if (intervalMs > beforeMs) timer.stretch(jittered(random, intervalMs, JITTER_PCT));
  };
  const sendAck = async (commandId: string, ack: AgentAck, id: string): Promise<void> => {
    const answer = await call("POST", `/commands/${encodeURIComponent(commandId)}/ack`, JSON.stringify(ack));
    if (answer === null) return;
    if (hasSucceeded(answer)) {
      const result = Result.safeParse(answer.body).data?.data;
      return result && on.acked(result, id);
    }
    const refused = ackRefusal(answer);
    if (refused !== "too large") return refused === null ? undefined : on.acked({ commandId, status: null, result: refused }, id);
    // Its status counts more than its output.
    const { output, ...rest } = ack;
    return output === undefined ? on.acked({ commandId, status: null, result: "refused" }, id) : sendAck(commandId, { ...rest, outputTruncated: true }, id);
  };

  const sendHeartbeat = async (): Promise<void> => {
    const answer = await call("POST", "/heartbeat", JSON.stringify({ status: "online", metrics: metrics() }));
    (answer && HeartbeatAnswer.safeParse(answer.body).data)?.data.cancel.forEach(on.cancel);
  };

  return {
    every: (intervalMs) => {
      if (intervalMs !== null) return pollEvery(intervalMs);
      everyMs = null;
      cancelResume();
      timer.cancel();
    },
    now: poll,
    ack: (commandId, ack) => {
      sequence += 1;
      const id = `rest-${sequence}`;
      void sendAck(commandId, ack, id);
      return id;
    },
    heartbeat: () => void sendHeartbeat(),
  };
};
