// The options of the bench's command line.
import { parseArgs } from "node:util";
import { METRICS } from "./metrics.ts";

export interface BenchOptions {
  readonly quick: boolean;
  readonly json: boolean;
  /** Ids of metrics; empty for all. */
  readonly only: readonly string[];
  /** How often everything is measured; the results are medians of these runs. */
  readonly repeat: number;
  /** Folder for a CPU profile of each gateway. */
  readonly profile: string | null;
}

export class UsageError extends Error {
  override readonly name = "UsageError";
}

export const BENCH_HELP = `npm run bench -- [--quick] [--only ID,...] [--repeat N] [--json] [--profile FOLDER]

Measures a production build of the gateway beside its references, prints a table and writes test/bench/results/latest.json.
It starts and ends its own PostgreSQL, Redis, gateways and load generators. Needs redis-server and a C compiler.

  --quick            measures ingest, peers and memory within a minute
  --only ID,...      measures only these metrics; an id stands for all that begin with it, e.g. vs
  --repeat N         measures everything N times, each time from an empty database, and prints the medians of the runs
  --json             prints the results as JSON instead of the table
  --profile FOLDER   writes a CPU profile of each gateway, and command-cpu also prints the time of a command by part, statement and log record;
                     the figures of such a run do not count

Metrics:
${METRICS.map(({ id, name, target, unit }) => `  ${id.padEnd(32)}${name}${target === null ? "" : ` (${target} ${unit})`}`).join("\n")}`;

/** Returns null for --help. Throws UsageError. */
export const readOptions = (args: readonly string[]): BenchOptions | null => {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        quick: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
        only: { type: "string" },
        repeat: { type: "string", default: "1" },
        profile: { type: "string" },
      },
    });
    if (values.help) return null;
    const only = (values.only ?? "").split(",").filter(Boolean);
    const unknown = only.filter((word) => !METRICS.some(({ id }) => id === word || id.startsWith(`${word}-`)));
    if (unknown.length > 0) throw new UsageError(`there is no metric ${unknown.join(", ")}; see --help`);
    if (!/^[1-9]$/.test(values.repeat)) throw new UsageError("--repeat takes a number from 1 to 9");
    return { quick: values.quick, json: values.json, only, repeat: Number(values.repeat), profile: values.profile ?? null };
  } catch (error) {
    if (error instanceof Error && !(error instanceof UsageError)) throw new UsageError(error.message);
    throw error;
  }
};

export const isWanted = ({ only }: Pick<BenchOptions, "only">, id: string): boolean =>
  only.length === 0 || only.some((word) => id === word || id.startsWith(`${word}-`));
