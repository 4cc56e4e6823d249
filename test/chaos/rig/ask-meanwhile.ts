// Queues commands for a device of its own while nothing can be stored, and counts the answers.
import { randomUUID } from "node:crypto";
import { createHttp, type Http, type HttpAnswer, NoAnswer, pause, retryAfterMs, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { type Rig, urlOf } from "./rig.ts";

/** The promise of every call: it ends by then. */
const LATEST_MS = 8_000;
const EVERY_MS = 400;

export interface Asked {
  readonly answers: {
    "503 with retry advice": number;
    "503 without": number;
    "2xx meanwhile": number;
    "no answer": number;
    "too late": number;
    other: number;
    waited: number;
  };
  readonly latency: ReturnType<typeof createLatency>;
}

/** Queues one command; null without an answer. */
export const queueOnce = ({ credentials }: Pick<Rig, "credentials">, http: Http, deviceId: string): Promise<HttpAnswer | null> => {
  const headers = { "x-api-key": credentials.apiKey, "x-svc-tenant-id": credentials.tenantId, "idempotency-key": randomUUID() };
  return http
    .call({ method: "POST", path: `/v1/devices/${deviceId}/commands`, headers, body: JSON.stringify({ type: "ping", payload: {} }) })
    .catch((error: unknown) => {
      if (error instanceof NoAnswer) return null;
      throw error;
    });
};

export interface AskOptions {
  readonly during: () => boolean;
  readonly latestMs?: number;
  readonly everyMs?: number;
}

export const askMeanwhile = async (rig: Rig, deviceId: string, { during, latestMs = LATEST_MS, everyMs = EVERY_MS }: AskOptions): Promise<Asked> => {
  const http = createHttp(urlOf(rig.apiProxy), 32);
  const answers: Asked["answers"] = {
    "503 with retry advice": 0,
    "503 without": 0,
    "2xx meanwhile": 0,
    "no answer": 0,
    "too late": 0,
    other: 0,
    waited: 0,
  };
  const latency = createLatency();
  const askOnce = async (): Promise<void> => {
    const startMs = time.elapsedMs();
    const answer = await queueOnce(rig, http, deviceId);
    const tookMs = time.elapsedMs() - startMs;
    latency.add(tookMs);
    if (tookMs > latestMs) answers["too late"] += 1;
    if (answer === null) answers["no answer"] += 1;
    else if (answer.status === 503) answers[retryAfterMs(answer) === null ? "503 without" : "503 with retry advice"] += 1;
    else if (answer.status !== 201) answers.other += 1;
    else answers[during() ? "2xx meanwhile" : "waited"] += 1;
  };
  const asking: Promise<void>[] = [];
  while (during()) {
    asking.push(askOnce());
    await pause(time, everyMs);
  }
  await Promise.all(asking);
  http.close();
  return { answers, latency };
};

/** One line of a report. */
export const toldOf = ({ answers, latency }: Asked): string => {
  const words = Object.entries(answers)
    .filter(([, count]) => count > 0)
    .map(([how, count]) => `${count} ${how}`);
  const { p50, p99 } = latency.percentiles();
  return `calls in the gap: ${words.join(", ")}; answered after ${Math.round(p50 ?? 0)} ms (p50), ${Math.round(p99 ?? 0)} ms (p99)`;
};
