// What the command line asks for.
import { parseArgs } from "node:util";
import { METRICS } from "./metrics.ts";

export interface Options {
  readonly quick: boolean;
  readonly json: boolean;
  /** Ids of metrics; empty: all of them. */
  readonly only: readonly string[];
  /** Folder for a CPU profile of each gateway. */
  readonly profile: string | null;
}

export class UsageError extends Error {
  override readonly name = "UsageError";
}

export const HELP = `npm run bench -- [--quick] [--only ID,...] [--json] [--profile FOLDER]

Measures a production build of the gateway beside its references and prints a table; writes test/bench/results/latest.json.
It starts its own PostgreSQL, Redis, gateways and load generators, and ends them. Needs redis-server and a C compiler.

  --quick            ingest, peers and memory, within a minute
  --only ID,...      these metrics alone; an id stands for all that begin with it, e.g. vs
  --json             the results on standard output instead of the table
  --profile FOLDER   a CPU profile of each gateway, for reading; figures of such a run are void

Metrics:
${METRICS.map(({ id, name, target, unit }) => `  ${id.padEnd(32)}${name}${target === null ? "" : ` (${target} ${unit})`}`).join("\n")}`;

/** Throws UsageError; null when help was asked for. */
export const readOptions = (args: readonly string[]): Options | null => {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        quick: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
        only: { type: "string" },
        profile: { type: "string" },
      },
    });
    if (values.help) return null;
    const only = (values.only ?? "").split(",").filter(Boolean);
    const unknown = only.filter((word) => !METRICS.some(({ id }) => id === word || id.startsWith(`${word}-`)));
    if (unknown.length > 0) throw new UsageError(`there is no metric ${unknown.join(", ")}; see --help`);
    return { quick: values.quick, json: values.json, only, profile: values.profile ?? null };
  } catch (error) {
    if (error instanceof Error && !(error instanceof UsageError)) throw new UsageError(error.message);
    throw error;
  }
};

export const isWanted = ({ only }: Pick<Options, "only">, id: string): boolean =>
  only.length === 0 || only.some((word) => id === word || id.startsWith(`${word}-`));
