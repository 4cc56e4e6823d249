// CPU and memory of the projects on this machine, as the engine measures them: one `docker stats` for all of them, at most every ten seconds.
import { z } from "zod";
import type { Time } from "../../agent/index.ts";
import { runProgram } from "../../children/index.ts";

const EVERY_MS = 10_000;
/** The engine takes two samples, a second apart. */
const WITHIN_MS = 20_000;
/** Older figures say nothing. */
const VALID_MS = 60_000;

export interface Figures {
  readonly cpuPercent: number | null;
  readonly memoryBytes: number | null;
}
const NONE: Figures = { cpuPercent: null, memoryBytes: null };

const UNITS = new Map(["B", "KiB", "MiB", "GiB", "TiB"].map((unit, power) => [unit, 1_024 ** power]));

/** `12.5MiB / 1.9GiB` */
const bytesIn = (text: string): number | null => {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)([KMGT]?i?B)\b/.exec(text) ?? [];
  const factor = UNITS.get(unit);
  return factor === undefined ? null : Math.round(Number(number) * factor);
};
/** `1.65%`, where 100 % is one core. */
const percentIn = (text: string): number | null => {
  const [, number] = /^(\d+(?:\.\d+)?)%$/.exec(text) ?? [];
  return number === undefined ? null : Number(number);
};

const Row = z.object({ Name: z.string(), CPUPerc: z.string(), MemUsage: z.string() });

/** The rows of `docker stats --format '{{json .}}'`; a container that has just ended has no figures. */
export const figuresIn = (output: string, project: string): Figures => {
  const own = output.split("\n").flatMap((line): readonly Figures[] => {
    try {
      const { Name, CPUPerc, MemUsage } = Row.parse(JSON.parse(line));
      return Name.startsWith(`${project}-`) ? [{ cpuPercent: percentIn(CPUPerc), memoryBytes: bytesIn(MemUsage) }] : [];
    } catch {
      return [];
    }
  });
  return own.reduce(
    (sum, { cpuPercent, memoryBytes }) => ({
      cpuPercent: cpuPercent === null ? sum.cpuPercent : Math.round(((sum.cpuPercent ?? 0) + cpuPercent) * 10) / 10,
      memoryBytes: memoryBytes === null ? sum.memoryBytes : (sum.memoryBytes ?? 0) + memoryBytes,
    }),
    NONE,
  );
};

export interface EngineFigures {
  /** Measures in the background, if the last time is long enough ago. */
  refresh(closing: AbortSignal): void;
  of(project: string): Figures;
  forget(project: string): void;
}

export interface EngineFiguresOptions {
  readonly docker: string;
  readonly time: Time;
  readonly environment: () => NodeJS.ProcessEnv;
}

export const createEngineFigures = ({ docker, time, environment }: EngineFiguresOptions): EngineFigures => {
  let measured = { atMs: Number.NEGATIVE_INFINITY, output: "" };
  let begunMs = Number.NEGATIVE_INFINITY;
  let measuring = false;
  const forgotten = new Set<string>();
  const measure = async (closing: AbortSignal): Promise<void> => {
    const words = ["stats", "--no-stream", "--format", "{{json .}}"];
    const { outcome, code, output } = await runProgram({ command: docker, words, env: environment(), time, signals: [closing], withinMs: WITHIN_MS });
    if (outcome === "ended" && code === 0) measured = { atMs: time.elapsedMs(), output };
    forgotten.clear();
    measuring = false;
  };
  return {
    refresh: (closing) => {
      const nowMs = time.elapsedMs();
      if (measuring || nowMs - begunMs < EVERY_MS) return;
      [begunMs, measuring] = [nowMs, true];
      void measure(closing);
    },
    of: (project) => (forgotten.has(project) || time.elapsedMs() - measured.atMs > VALID_MS ? NONE : figuresIn(measured.output, project)),
    forget: (project) => void forgotten.add(project),
  };
};
