// Fetches due commands and sends acks by signed REST calls, at the interval that the gateway sets. For agents without a socket.
import { z } from "zod";
import type { AgentIdentity } from "../../protocol/index.ts";
import type { AgentAck } from "./ack-sender.ts";
import { AckAnswer, type Delivered, Polled } from "./frames.ts";
import { hostMetrics } from "./handlers.ts";
import { errorOf, type Http, type HttpAnswer, NoAnswer, retryAfterMs } from "./http.ts";
import { LONGEST_WAIT_MS } from "./plan.ts";
import { jittered, type Random } from "./random.ts";
import type { Sign } from "./signing.ts";
import { noop, type Time } from "./time.ts";

const POLL_LIMIT = 10;
const JITTER_PCT = 10;
/** Statuses that settle a call; a retry would not change them. */
const SETTLES: ReadonlySet<number> = new Set([200, 400, 404, 413, 422]);

export interface PollingDeps {
  readonly http: Http;
  readonly deviceId: string;
  readonly identity: AgentIdentity;
  /** This process, as in `hello`. */
  readonly instanceId: string;
  readonly time: Time;
  readonly random: Random;
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
  /** The gateway accepted or refused a signature with this secret. */
  secretAccepted(secret: string): void;
  secretRefused(secret: string): void;
  /** The gateway refused the timestamp and sent its own time. */
  clockSkewed(serverTimeMs: number): void;
}

export interface Polling {
  /** Polls at this interval from now on; null: never. The first poll comes after one interval. */
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

export const createPolling = ({ http, deviceId, identity, instanceId, sign, time, random, stampMs, on }: PollingDeps): Polling => {
  let everyMs: number | null = null;
  let notBeforeMs = 0;
  /** Another process with this identity is alive until then. Acks may still be sent. */
  let pollNotBeforeMs = 0;
  let polling = false;
  let sequence = 0;
  let cancel = noop;
  let cancelResume = noop;
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
    const { code, details } = errorOf(answer);
    if (wait !== null && code === "DUPLICATE_IDENTITY") pausePolling(wait);
    else if (wait !== null) notBeforeMs = time.elapsedMs() + wait;
    if (answer.status === 200) on.secretAccepted(secret);
    if (answer.status === 401 && details["reason"] === "bad_signature") on.secretRefused(secret);
    if (answer.status === 401 && details["reason"] === "timestamp_skew" && typeof details["serverTime"] === "string")
      on.clockSkewed(Date.parse(details["serverTime"]));
  };
  /** Resolves to null if the call settled nothing; the next poll or resend tries again. */
  const call = async (method: "GET" | "POST", suffix: string, body = ""): Promise<HttpAnswer | null> => {
    if (time.elapsedMs() < notBeforeMs) return null;
    const { secret } = identity;
    const signed = sign({ ...identity, secret }, { method, target: path + suffix, body }, new Date(stampMs()));
    const headers = method === "GET" ? { ...signed, "x-svc-instance-id": instanceId } : signed;
    const answer = await http.call({ method, path: path + suffix, headers, ...(method === "POST" ? { body } : {}) }).catch((error: unknown) => {
      if (error instanceof NoAnswer) return null;
      throw error;
    });
    if (answer) learn(answer, secret);
    return answer && SETTLES.has(answer.status) ? answer : null;
  };
  const fetchDue = async (): Promise<void> => {
    if (time.elapsedMs() < pollNotBeforeMs) return;
    const answer = await call("GET", `/commands?limit=${POLL_LIMIT}`);
    const found = answer && Items.safeParse(answer.body).data;
    if (!answer || !found) return;
    const requested = Number(answer.headers["x-svc-poll-interval"] ?? Number.NaN);
    if (everyMs !== null && requested > 0 && requested * 1_000 !== everyMs) {
      everyMs = Math.min(LONGEST_WAIT_MS, requested * 1_000);
      plan();
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
  const plan = (): void => {
    cancel();
    if (everyMs === null) return;
    cancel = time.after(jittered(random, everyMs, JITTER_PCT), () => {
      poll();
      plan();
    });
  };
  const sendAck = async (commandId: string, ack: AgentAck, id: string): Promise<void> => {
    const answer = await call("POST", `/commands/${encodeURIComponent(commandId)}/ack`, JSON.stringify(ack));
    if (answer && answer.status !== 200) return on.acked({ commandId, status: null, result: answer.status === 404 ? "unknown" : "refused" }, id);
    const result = answer && Result.safeParse(answer.body).data?.data;
    if (result) on.acked(result, id);
  };

  const sendHeartbeat = async (): Promise<void> => {
    const answer = await call("POST", "/heartbeat", JSON.stringify({ status: "online", metrics: hostMetrics() }));
    (answer && HeartbeatAnswer.safeParse(answer.body).data)?.data.cancel.forEach(on.cancel);
  };

  return {
    every: (intervalMs) => {
      everyMs = intervalMs;
      cancelResume();
      plan();
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
