// Runs cases, eight at once, each with its own gateway, agent and folder.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Time } from "../kit/timers.ts";
import { openKitGateway } from "./gateway/kit-gateway.ts";
import type { KitCase } from "./kit-case.ts";
import type { Patience } from "./kit-time.ts";
import { createStage } from "./stage.ts";
import { type CaseResult, NotObservable, Wrong } from "./verdict.ts";

export type ChosenCase = KitCase & { readonly suite: string };

export interface RunCasesOptions {
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly time: Time;
  readonly patience: Patience;
  readonly atOnce: number;
  /** Where traces of failures go; of all cases with `tracesAll`. */
  readonly out: string;
  readonly tracesAll: boolean;
  /** The folder of programs for the suites with apps. */
  readonly programs: string;
  readonly onResult: (result: CaseResult) => void;
}

/** Their agents run apps or serve tunnels. */
const WITH_APPS: ReadonlySet<string> = new Set(["apps", "carrier"]);
const MAX_TRACE_LINES = 20_000;

/** Any error but these two is a defect of the kit, and ends the run. */
const judged = async (work: () => Promise<readonly CaseResult["hints"][number][]>): Promise<Pick<CaseResult, "verdict" | "finding" | "hints" | "why">> => {
  try {
    return { verdict: "pass", finding: null, hints: await work(), why: null };
  } catch (error) {
    if (error instanceof Wrong) return { verdict: "fail", finding: error.finding, hints: [], why: null };
    if (error instanceof NotObservable) return { verdict: "not observable", finding: null, hints: [], why: error.message };
    throw error;
  }
};

const runCase = async (chosen: ChosenCase, options: RunCasesOptions): Promise<CaseResult> => {
  const { time, patience, words, env, out, tracesAll } = options;
  const fromMs = time.elapsedMs();
  const folder = mkdtempSync(join(tmpdir(), "agent-kit-"));
  const lines: string[] = [];
  const trace = (what: string, seen: unknown): void => {
    if (lines.length < MAX_TRACE_LINES) lines.push(JSON.stringify({ ms: Math.round(time.elapsedMs() - fromMs), what, seen }));
  };
  const gateway = await openKitGateway({ time, trace });
  const stage = createStage({
    gateway,
    folder,
    words,
    env: { ...env, ...(WITH_APPS.has(chosen.suite) ? { MOORING_KIT_APP: options.programs } : {}), ...chosen.env },
    time,
    patience,
  });
  let output = "";
  try {
    const found = await judged(async () => {
      try {
        await chosen.run(stage);
        return await stage.finish();
      } finally {
        output = stage.hasStarted ? stage.agent.output : "";
        await stage.abandon();
      }
    });
    if (tracesAll || found.verdict === "fail") {
      mkdirSync(join(out, "traces"), { recursive: true });
      writeFileSync(join(out, "traces", `${chosen.id}.ndjson`), `${lines.join("\n")}\n`);
      writeFileSync(join(out, "traces", `${chosen.id}.output`), output);
    }
    return { id: chosen.id, suite: chosen.suite, title: chosen.title, ...found, ms: Math.round(time.elapsedMs() - fromMs) };
  } finally {
    await gateway.close();
    rmSync(folder, { recursive: true, force: true });
  }
};

export const runCases = async (cases: readonly ChosenCase[], options: RunCasesOptions): Promise<readonly CaseResult[]> => {
  const waiting = cases.toSorted((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0));
  const results: CaseResult[] = [];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const result = await runCase(next, options);
      results.push(result);
      options.onResult(result);
    }
  };
  await Promise.all(Array.from({ length: options.atOnce }, work));
  const place = (id: string): number => cases.findIndex((each) => each.id === id);
  return results.sort((a, b) => place(a.id) - place(b.id));
};
