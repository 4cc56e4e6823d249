// A database that dies or cannot be reached.
import { randomUUID } from "node:crypto";
import { createHttp, NoAnswer, pause, retryAfterMs, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../../agent-sim/fleet/latency.ts";
import { createRig, type Rig, urlOf } from "../../rig/rig.ts";
import { fromSmallBuffer } from "../../rig/shortcuts.ts";
import { ask } from "../../rig/sql.ts";
import type { Scenario, ScenarioOutcome } from "../../scenario.ts";
import { runTrial, type TrialStage } from "../../trial.ts";
import { onRig, trialOf } from "../kills.ts";

/** PostgreSQL writes its WAL to disk only when a commit asks for it, and with these settings none does. */
const ANSWERS_FIRST = { synchronous_commit: "off", wal_writer_delay: "10s", wal_writer_flush_after: "1GB", wal_buffers: "64MB", bgwriter_lru_maxpages: "0" };
const WRITERS = ["walwriter", "background writer", "checkpointer"] as const;

const postgresKill: Scenario = {
  name: "postgres-kill",
  promise: "R3",
  claim: "a command answered 2xx survives kill -9 of PostgreSQL and all its backends; none gets 2xx while it is down",
  control: { how: "synchronous_commit=off with the WAL writers stopped: PostgreSQL answers before the data is safe", red: "ok-lost" },
  run: ({ seed, scale, control }) =>
    onRig(
      { nodes: 1, seed, ...(control ? { postgresSettings: ANSWERS_FIRST } : {}) },
      {
        seed,
        scale,
        impatient: control,
        trouble: async ({ rig, running, random, fault, gap, wait }: TrialStage) => {
          // Rows so far are safe; rows from now on are only in memory.
          if (control) await ask(rig.postgres, "checkpoint");
          if (control) for (const writer of WRITERS) await rig.postgres.signalHelpers(writer, "SIGSTOP");
          await wait(1_500);
          while (running()) {
            fault("kill -9 PostgreSQL");
            await rig.postgres.kill();
            const over = gap();
            await wait(200 + random() * 500);
            over();
            await rig.postgres.start();
            await wait(2_000 + random() * 1_500);
          }
        },
      },
    ),
};

interface Asked {
  readonly answers: { "503 with retry advice": number; "503 without": number; "2xx too early": number; "no answer": number; other: number; waited: number };
  readonly latency: ReturnType<typeof createLatency>;
}
/** Queues commands for a separate device while nothing can be stored, and counts the answers. */
const askMeanwhile = async (rig: Rig, deviceId: string, during: () => boolean): Promise<Asked> => {
  const http = createHttp(urlOf(rig.apiProxy), 32);
  const answers: Asked["answers"] = { "503 with retry advice": 0, "503 without": 0, "2xx too early": 0, "no answer": 0, other: 0, waited: 0 };
  const latency = createLatency();
  const askOnce = async (): Promise<void> => {
    const startMs = time.elapsedMs();
    const headers = { "x-api-key": rig.credentials.apiKey, "x-svc-tenant-id": rig.credentials.tenantId, "idempotency-key": randomUUID() };
    const request = { method: "POST", path: `/v1/devices/${deviceId}/commands`, headers, body: JSON.stringify({ type: "ping", payload: {} }) } as const;
    const answer = await http.call(request).catch((error: unknown) => {
      if (error instanceof NoAnswer) return null;
      throw error;
    });
    latency.add(time.elapsedMs() - startMs);
    if (answer === null) answers["no answer"] += 1;
    else if (answer.status === 503) answers[retryAfterMs(answer) === null ? "503 without" : "503 with retry advice"] += 1;
    else if (answer.status !== 201) answers.other += 1;
    else answers[during() ? "2xx too early" : "waited"] += 1;
  };
  const asking: Promise<void>[] = [];
  while (during()) {
    asking.push(askOnce());
    await pause(time, 400);
  }
  await Promise.all(asking);
  http.close();
  return { answers, latency };
};

const LEAST_SECONDS = { full: 36, short: 6 };

const postgresUnreachable: Scenario = {
  name: "postgres-unreachable",
  promise: "R3",
  claim: "half a minute without any answer from PostgreSQL loses nothing: meanwhile calls wait or get 503 with Retry-After, none gets 2xx",
  control: { how: "the gateway answers 2xx from a buffer of ten commands that it writes one after another", red: "ok-lost" },
  run: async (context): Promise<ScenarioOutcome> => {
    const rig = await createRig({ nodes: 1, seed: context.seed });
    const isFull = context.scale.seconds > 10;
    const gapMs = isFull ? 30_000 : 3_000;
    const seconds = Math.max(context.scale.seconds, isFull ? LEAST_SECONDS.full : LEAST_SECONDS.short);
    const state: { asked: Asked | null; held: boolean } = { asked: null, held: false };
    try {
      const [bystander] = await rig.provision(1);
      const trial = await runTrial({
        rig,
        ...trialOf({ ...context, scale: { ...context.scale, seconds } }, fromSmallBuffer),
        trouble: async ({ fault, gap, wait }: TrialStage) => {
          await wait(1_000);
          fault(`PostgreSQL black-holed for ${gapMs} ms`);
          rig.databaseProxy.set({ hold: ["up", "down"], newcomers: "ignore" });
          const over = gap();
          state.held = true;
          const asking = askMeanwhile(rig, bystander?.deviceId ?? "", () => state.held);
          await wait(gapMs);
          // The control answers too early by design, so only the real gateway is checked here.
          if (!context.control) over();
          state.held = false;
          rig.databaseProxy.calm();
          state.asked = await asking;
        },
        relief: () => rig.databaseProxy.calm(),
      });
      const { answers, latency } = state.asked ?? { answers: null, latency: createLatency() };
      const wrong = answers === null ? 1 : answers["503 without"] + answers["no answer"] + answers.other + answers["2xx too early"];
      const told = Object.entries(answers ?? {}).filter(([, count]) => count > 0);
      const words = told.map(([how, count]) => `${count} ${how}`).join(", ");
      const note = `calls in the gap: ${words}; answered after ${Math.round(latency.percentiles().p50 ?? 0)} ms (p50), ${Math.round(latency.percentiles().p99 ?? 0)} ms (p99)`;
      return { ...trial, violations: { ...trial.violations, "wrong-answer-in-gap": wrong }, notes: [...trial.notes, note] };
    } finally {
      await rig.close();
    }
  },
};

export const databaseScenarios: readonly Scenario[] = [postgresKill, postgresUnreachable];
