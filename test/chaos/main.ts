// `npm run chaos`: breaks things on purpose, checks what becomes of every command, and prints a report card.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { packageRoot, systemTime as time } from "../../agent-sim/agent/index.ts";
import { type Card, cardOf, isGood, markdownOf, type ScenarioResult, scenarioResultOf, skippedResult, tableOf, withAgain } from "./check/report.ts";
import { type Context, SCALES, type Scale, type Scenario, type ScenarioOutcome } from "./scenario.ts";
import { SCENARIOS } from "./scenario-list.ts";

const CHAOS_HELP = `Chaos runs its own gateways, PostgreSQL and Redis with a fleet under load, injects faults and checks the history of every command.

  npm run chaos -- [--scenario NAME|all] [--seed N] [options]

  --scenario NAME   one of the names below, several separated by commas, or all (default all)
  --seed N          repeats the same load, jitter and order of faults (default 1)
  --short           few agents, seconds instead of minutes
  --agents N        number of agents instead of the scale's
  --seconds N       duration of the load instead of the scale's
  --no-control      skips the positive controls
  --jobs N          scenarios that run at the same time (default 1, with --short 3); controls are small and always run three at a time
  --json            prints the report card as one JSON object on stdout; progress stays on stderr
  --write           writes docs/reliability.json and docs/reliability.md; with --scenario it replaces or adds only the rows of those scenarios
  --help            prints this text

Exit code 0: every promise held and every control turned red. 1: a promise broke, a control stayed green or a scenario could not run. 2: wrong usage.

Scenarios:
${SCENARIOS.map(({ name, claim }) => `  ${name.padEnd(24)} ${claim}`).join("\n")}
`;

const ROOT = packageRoot(import.meta.dirname);
const COULD_NOT_RUN = 2;
const SCENARIO_MS = 600_000;
const SIDE_BY_SIDE = 3;
const whole = (low: number, high: number) => z.coerce.number().int().min(low).max(high);
const Options = z.object({
  scenario: z.string().default("all"),
  seed: whole(0, 4_294_967_295).default(1),
  short: z.boolean().default(false),
  agents: whole(1, 10_000).optional(),
  seconds: whole(1, 3_600).optional(),
  "no-control": z.boolean().default(false),
  jobs: whole(1, 8).optional(),
  json: z.boolean().default(false),
  write: z.boolean().default(false),
  help: z.boolean().default(false),
});
type Options = z.infer<typeof Options>;

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const chosen = (names: string): readonly Scenario[] => {
  if (names === "all") return SCENARIOS;
  return names.split(",").map((name) => {
    const found = SCENARIOS.find((scenario) => scenario.name === name);
    if (!found) throw new Error(`there is no scenario "${name}"; see --help`);
    return found;
  });
};

/** A run that hangs fails; leaving the process then ends every child. */
const bounded = async (run: Promise<ScenarioOutcome>, name: string): Promise<ScenarioOutcome> => {
  let late: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new Error(`${name} did not end in ${SCENARIO_MS / 1_000} s`)), SCENARIO_MS);
  });
  return Promise.race([run, tooLong]).finally(() => clearTimeout(late));
};

/** Prints the result of one run at once, since other runs may print at the same time. */
const tell = (title: string, startMs: number, outcome: ScenarioOutcome): void => {
  const broken = Object.entries(outcome.violations).filter(([, count]) => count > 0);
  const words = broken.length === 0 ? "nothing broken" : broken.map(([name, count]) => `${count} ${name}`).join(", ");
  const head = `${title}: ${((time.elapsedMs() - startMs) / 1_000).toFixed(1)} s, n ${outcome.n}, ${outcome.faults} faults, ${words}`;
  say([head, ...outcome.notes].join("\n    "));
};

/** The outcome, or the reason why there is none. */
const attempt = async (title: string, scenario: Scenario, context: Context): Promise<ScenarioOutcome | string> => {
  const startMs = time.elapsedMs();
  say(`${title}: begins`);
  try {
    const outcome = await bounded(scenario.run(context), scenario.name);
    tell(title, startMs, outcome);
    return outcome;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    say(`${title}: could not run: ${why}`);
    return why;
  }
};

/** Works through the items in order, that many at a time. */
const sideBySide = async <T, R>(items: readonly T[], jobs: number, work: (item: T) => Promise<R>): Promise<ReadonlyMap<T, R>> => {
  const done = new Map<T, R>();
  const left = [...items];
  const take = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) done.set(item, await work(item));
  };
  await Promise.all(Array.from({ length: jobs }, take));
  return done;
};

const perform = async (scenarios: readonly Scenario[], { seed, scale, jobs, controls }: Plan): Promise<readonly ScenarioResult[]> => {
  const runs = await sideBySide(scenarios, jobs, (one) => attempt(one.name, one, { seed, scale, control: false }));
  const controlled = await sideBySide(controls ? scenarios : [], SIDE_BY_SIDE, (one) =>
    attempt(`${one.name}, control`, one, { seed, scale: SCALES.short, control: true }),
  );
  return scenarios.map((one) => {
    const [run, control] = [runs.get(one) ?? "it did not run", controlled.get(one) ?? null];
    if (typeof run === "string") return skippedResult(one, seed, run);
    return typeof control === "string" ? skippedResult(one, seed, `control: ${control}`) : scenarioResultOf(one, seed, run, control);
  });
};

interface Plan {
  readonly seed: number;
  readonly scale: Scale;
  readonly jobs: number;
  readonly controls: boolean;
}

/** Single scenarios replace their rows in the existing card. */
const writeCard = async (folder: string, card: Card, { whole }: { readonly whole: boolean }): Promise<void> => {
  const file = join(folder, "reliability.json");
  // as: this program wrote it
  const written = whole ? card : withAgain(JSON.parse(await readFile(file, "utf8")) as Card, card);
  if (written === null) throw new Error(`${file} comes from another scale: run all scenarios`);
  await writeFile(file, `${JSON.stringify(written, null, 2)}\n`);
  await writeFile(join(folder, "reliability.md"), markdownOf(written));
};

const runAll = async ({ scenario, seed, short, agents, seconds, jobs, "no-control": noControl, json, write }: Options): Promise<number> => {
  const common = short ? SCALES.short : SCALES.full;
  const scale: Scale = { ...common, agents: agents ?? common.agents, seconds: seconds ?? common.seconds };
  const results = await perform(chosen(scenario), { seed, scale, jobs: jobs ?? (short ? SIDE_BY_SIDE : 1), controls: !noControl });
  const card = cardOf(results, { cwd: ROOT, wallMs: time.wallMs(), scale });
  process.stdout.write(json ? `${JSON.stringify(card)}\n` : `\n${tableOf(card)}`);
  for (const { skipped, violations, control, scenario: name } of results.filter((result) => !isGood(result)))
    say(
      `BROKEN: ${name} with --seed ${seed}: ${skipped ?? (violations > 0 ? `${violations} violations` : control.ran ? "its control stayed green" : "nothing was tried")}`,
    );
  if (write) await writeCard(join(ROOT, "docs"), card, { whole: scenario === "all" });
  return results.every(isGood) ? 0 : 1;
};

/** Returns the exit code. */
const main = async (): Promise<number> => {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values } = parseArgs({
    options: {
      scenario: text,
      seed: text,
      short: flag,
      agents: text,
      seconds: text,
      "no-control": flag,
      jobs: text,
      json: flag,
      write: flag,
      help: { ...flag, short: "h" },
    },
  });
  const options = Options.parse(values);
  if (options.help) {
    process.stdout.write(CHAOS_HELP);
    return 0;
  }
  // Children end with this process (children.ts), so exiting is enough.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
  return runAll(options);
};

const code = await main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  return COULD_NOT_RUN;
});
// Flush stdout, then exit: a handle that a broken network left open must not keep the process alive.
process.stdout.write("", () => process.exit(code));
