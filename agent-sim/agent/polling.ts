// The way without a socket: fetch due commands and acknowledge them by signed REST calls, at the pace that the gateway names.
import { z } from "zod";
import type { AgentIdentity } from "../../protocol/index.ts";
import type { Word } from "./acks.ts";
import { AckAnswer, type Delivered, Polled } from "./frames.ts";
import { vitals } from "./handlers.ts";
import { errorOf, type Http, type HttpAnswer, NoAnswer, retryAfterMs } from "./http.ts";
import { LONGEST_WAIT_MS } from "./plan.ts";
import { jittered, type Random } from "./random.ts";
import type { Sign } from "./signing.ts";
import { nothing, type Time } from "./time.ts";

const POLL_LIMIT = 10;
const JITTER_PCT = 10;
/** What no repetition would change. */
const SETTLES: ReadonlySet<number> = new Set([200, 400, 404, 413, 422]);

export interface PollingDeps {
  readonly http: Http;
  readonly deviceId: string;
  readonly identity: AgentIdentity;
  /** Of this process, as in hello. */
  readonly instanceId: string;
  readonly time: Time;
  readonly random: Random;
  readonly sign: Sign;
  /** The time to sign with; never the same twice. */
  readonly stampMs: () => number;
  readonly on: PollingEvents;
}

export interface PollingEvents {
  command(item: Delivered): void;
  acked(answer: AckAnswer, ref: string): void;
  cancel(commandId: string): void;
  /** The gateway has answered a poll. */
  reached(): void;
  /** This secret was accepted, or not. */
  proven(secret: string): void;
  disproven(secret: string): void;
  /** 401 with the server's time in it: the clock here is off. */
  skewed(serverTimeMs: number): void;
}

export interface Polling {
  /** Polls at this pace from now on; null: not at all. The first poll comes within one interval. */
  every(intervalMs: number | null): void;
  /** One poll at once, whatever the pace. */
  now(): void;
  ack(commandId: string, word: Word): string | null;
  /** Reports liveness by REST, for an agent that never has a socket. */
  heartbeat(): void;
}

const Cancel = z.array(z.string()).default([]);
const Items = z.object({ data: z.array(Polled), cancel: Cancel });
const Beat = z.object({ data: z.object({ cancel: Cancel }) });
const Result = z.object({ data: AckAnswer });

export const createPolling = ({ http, deviceId, identity, instanceId, sign, time, random, stampMs, on }: PollingDeps): Polling => {
  let everyMs: number | null = null;
  let notBeforeMs = 0;
  /** Another process of this identity lives; words about commands may still be sent. */
  let pollNotBeforeMs = 0;
  let polling = false;
  let sequence = 0;
  let cancel = nothing;
  let cancelReturn = nothing;
  const path = `/v1/devices/${encodeURIComponent(deviceId)}`;

  const stayAway = (waitMs: number): void => {
    pollNotBeforeMs = time.elapsedMs() + waitMs;
    cancelReturn();
    if (everyMs === null) return;
    cancelReturn = time.after(waitMs, () => {
      // The timer may be early by less than a millisecond, and the next regular poll late by half a minute.
      pollNotBeforeMs = 0;
      poll();
    });
  };
  const learn = (answer: HttpAnswer, secret: string): void => {
    const wait = retryAfterMs(answer);
    const { code, details } = errorOf(answer);
    if (wait !== null && code === "DUPLICATE_IDENTITY") stayAway(wait);
    else if (wait !== null) notBeforeMs = time.elapsedMs() + wait;
    if (answer.status === 200) on.proven(secret);
    if (answer.status === 401 && details["reason"] === "bad_signature") on.disproven(secret);
    if (answer.status === 401 && details["reason"] === "timestamp_skew" && typeof details["serverTime"] === "string")
      on.skewed(Date.parse(details["serverTime"]));
  };
  /** null: nothing that settles anything; the next poll or resend tries again. */
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
    const told = Number(answer.headers["x-svc-poll-interval"] ?? Number.NaN);
    if (everyMs !== null && told > 0 && told * 1_000 !== everyMs) {
      everyMs = Math.min(LONGEST_WAIT_MS, told * 1_000);
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
  const sendAck = async (commandId: string, word: Word, id: string): Promise<void> => {
    const answer = await call("POST", `/commands/${encodeURIComponent(commandId)}/ack`, JSON.stringify(word));
    if (answer && answer.status !== 200) return on.acked({ commandId, status: null, result: answer.status === 404 ? "unknown" : "refused" }, id);
    const result = answer && Result.safeParse(answer.body).data?.data;
    if (result) on.acked(result, id);
  };

  const beat = async (): Promise<void> => {
    const answer = await call("POST", "/heartbeat", JSON.stringify({ status: "online", metrics: vitals() }));
    (answer && Beat.safeParse(answer.body).data)?.data.cancel.forEach(on.cancel);
  };

  return {
    every: (intervalMs) => {
      everyMs = intervalMs;
      cancelReturn();
      plan();
    },
    now: poll,
    ack: (commandId, word) => {
      sequence += 1;
      const id = `rest-${sequence}`;
      void sendAck(commandId, word, id);
      return id;
    },
    heartbeat: () => void beat(),
  };
};
