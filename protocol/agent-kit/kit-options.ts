// The command line of the kit.
import { parseArgs } from "node:util";
import { allCases, SUITES } from "./cases/suites.ts";

export const KIT_HELP = `Judges an agent for Mooring: plays the gateway, and tells which sentences of the protocol the agent does not do.

  npx @mooring/agent-kit [options] -- COMMAND [ARGUMENTS]

  --suite NAMES    the suites to run, with commas between them (default: core); all: every suite
  --only IDS       only these cases, like WAIT-2,RUN-1
  --trace          keep the trace of every case, not only of failures
  --known FILE     cases that may fail, an id a line; one of them that passes fails the run
  --out DIR        where report.json, junit.xml and traces go (default: kit-out)
  --at-once N      cases at a time (default: 8)
  --list           list the suites and cases
  --help

Suites:
${SUITES.map(({ name, about, cases }) => `  ${name.padEnd(9)} ${String(cases.length).padStart(2)} cases  ${about}\n`).join("")}
The agent is started with these variables, and nothing else is asked of it:
  MOORING_URL               the gateway
  MOORING_IDENTITY          the file of its identity, as the response of pairing has it. If there is none, the agent pairs first and writes it:
  MOORING_ENROLLMENT_TOKEN  with this token, or, without the variable, by showing code, digits and page on its output
  MOORING_STATE             a folder for everything that it keeps, such as the journal
  MOORING_EFFECTS           a file. With it, the agent knows the command test.effect {key, ms, fail}: append the line "begin KEY" to the file and sync
                            it, wait ms milliseconds, then append "end KEY" and sync it. With fail: true, end as a command that fails does.
                            Suites poll and more also send test.output {bytes}: succeed with an output of that many characters. In suite more, an effect
                            of a second or more tells its progress.
  MOORING_KIT_APP           suite apps: the folder of programs; the app of kind process with the program kit-app runs kit-app/main.mjs there with node

Exit code 0: no failure. 1: a case failed. 2: the run could not start.
`;

/** The message tells what to do. */
export class KitUsage extends Error {
  override readonly name = "KitUsage";
}

export interface KitOptions {
  readonly words: readonly string[];
  readonly cases: ReturnType<typeof allCases>;
  readonly tracesAll: boolean;
  readonly knownFile: string | null;
  readonly out: string;
  readonly atOnce: number;
  readonly lists: boolean;
  readonly helps: boolean;
}

const listOf = (text: string): readonly string[] => text.split(",").flatMap((part) => (part.trim() === "" ? [] : [part.trim()]));

const choose = (suites: readonly string[], only: readonly string[] | null): ReturnType<typeof allCases> => {
  const cases = allCases();
  const unknown = suites.filter((name) => name !== "all" && !SUITES.some((suite) => suite.name === name));
  if (unknown.length > 0) throw new KitUsage(`there is no suite ${unknown.join(", ")}; there are ${SUITES.map(({ name }) => name).join(", ")}`);
  if (only === null) return cases.filter(({ suite }) => suites.includes("all") || suites.includes(suite));
  const missing = only.filter((id) => !cases.some((each) => each.id === id));
  if (missing.length > 0) throw new KitUsage(`there is no case ${missing.join(", ")}; see --list`);
  return cases.filter(({ id }) => only.includes(id));
};

export const parseKitOptions = (args: readonly string[]): KitOptions => {
  const at = args.indexOf("--");
  const [own, words] = at < 0 ? [args, []] : [args.slice(0, at), args.slice(at + 1)];
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  let parsed: { readonly [name: string]: string | boolean | undefined };
  try {
    parsed = parseArgs({
      args: [...own],
      options: {
        suite: text,
        only: text,
        known: text,
        out: text,
        "at-once": text,
        trace: flag,
        list: flag,
        help: { type: "boolean", default: false, short: "h" },
      },
    }).values;
  } catch (error) {
    throw new KitUsage(error instanceof Error ? error.message : String(error));
  }
  const atOnce = Number(parsed["at-once"] ?? 8);
  if (!Number.isInteger(atOnce) || atOnce < 1 || atOnce > 64) throw new KitUsage("--at-once: a whole number from 1 to 64");
  const given = (name: string): string | null => (typeof parsed[name] === "string" ? parsed[name] : null);
  const only = given("only");
  const options: KitOptions = {
    words,
    cases: choose(listOf(given("suite") ?? "core"), only === null ? null : listOf(only)),
    tracesAll: parsed["trace"] === true,
    knownFile: given("known"),
    out: given("out") ?? "kit-out",
    atOnce,
    lists: parsed["list"] === true,
    helps: parsed["help"] === true,
  };
  if (words.length === 0 && !options.lists && !options.helps)
    throw new KitUsage("name the agent's command after --, as in: npx @mooring/agent-kit -- ./my-agent");
  return options;
};
