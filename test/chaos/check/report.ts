// The report card: each promise, how often it was tested, how often it broke, and whether the checker noticed its control.
import { execFileSync } from "node:child_process";
import { cpus, platform, totalmem } from "node:os";
import { isRed, type Scale, type Scenario, type ScenarioOutcome, totalOf } from "../scenario.ts";

export interface ScenarioResult {
  readonly promise: string;
  readonly scenario: string;
  readonly claim: string;
  readonly seed: number;
  readonly n: number;
  readonly faults: number;
  readonly violations: number;
  readonly broken: Readonly<Record<string, number>>;
  /** The upper bound of the violated share, with 95 % confidence, if no violation was seen. */
  readonly upper95: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly control: { readonly ran: boolean; readonly red: boolean; readonly how: string };
  /** The reason why it did not run. */
  readonly skipped: string | null;
  readonly notes: readonly string[];
  /** The later run of this scenario alone; with its machine, if that is another one. */
  readonly again?: { readonly commit: string; readonly date: string; readonly machine?: string };
}

export interface Card {
  readonly commit: string;
  readonly date: string;
  readonly machine: string;
  /** The size of the fleet and the duration of each load. */
  readonly scale: string;
  readonly results: readonly ScenarioResult[];
}

export const scenarioResultOf = (
  { name, promise, claim, control }: Scenario,
  seed: number,
  outcome: ScenarioOutcome,
  controlled: ScenarioOutcome | null,
): ScenarioResult => {
  const violations = totalOf(outcome);
  const broken = Object.fromEntries(Object.entries(outcome.violations).filter(([, count]) => count > 0));
  return {
    promise,
    scenario: name,
    claim,
    seed,
    n: outcome.n,
    faults: outcome.faults,
    violations,
    broken,
    upper95: violations === 0 && outcome.n > 0 ? 3 / outcome.n : null,
    p50Ms: outcome.latencyMs.p50,
    p99Ms: outcome.latencyMs.p99,
    control: {
      ran: controlled !== null,
      red: controlled !== null && isRed({ control }, controlled),
      how: `${control.how} → ${[control.red].flat().join(", ")}`,
    },
    skipped: null,
    notes: outcome.notes,
  };
};

export const skippedResult = ({ name, promise, claim, control }: Scenario, seed: number, why: string): ScenarioResult => ({
  promise,
  scenario: name,
  claim,
  seed,
  n: 0,
  faults: 0,
  violations: 0,
  broken: {},
  upper95: null,
  p50Ms: null,
  p99Ms: null,
  control: { ran: false, red: false, how: control.how },
  skipped: why,
  notes: [],
});

/** A promise holds if it was tested, never broken, and the checker noticed the control. */
export const isGood = ({ skipped, n, violations, control }: ScenarioResult): boolean =>
  skipped === null && n > 0 && violations === 0 && (!control.ran || control.red);

const commit = (cwd: string): string => {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    // A copy without its git history.
    return "unknown";
  }
};
export const cardOf = (
  results: readonly ScenarioResult[],
  { cwd, wallMs, scale }: { readonly cwd: string; readonly wallMs: number; readonly scale: Scale },
): Card => ({
  commit: commit(cwd),
  date: new Date(wallMs).toISOString(),
  machine: `${cpus().length} x ${cpus()[0]?.model.trim() ?? "unknown"}, ${Math.round(totalmem() / 1_073_741_824)} GiB, ${platform()}, Node ${process.versions.node}`,
  scale: `${scale.agents} agents, ${scale.perSecond} commands/s for ${scale.seconds} s in each scenario, agents' waits ${scale.haste} times shorter`,
  results,
});

/** The card with the rows of a later run, new ones last; null if that run had another scale. Whether a promise holds depends on no machine. */
export const withAgain = (card: Card, { commit: at, date, machine, scale, results }: Card): Card | null => {
  if (scale !== card.scale) return null;
  const again = { commit: at, date, ...(machine === card.machine ? {} : { machine }) };
  const rows = new Map([...card.results, ...results.map((result) => ({ ...result, again }))].map((result) => [result.scenario, result]));
  return { ...card, results: [...rows.values()] };
};

const figure = (value: number | null): string => (value === null ? "-" : value < 10 ? value.toFixed(1) : String(Math.round(value)));
const share = (value: number | null): string => (value === null ? "-" : value.toExponential(1));
const controlWord = ({ control, skipped }: ScenarioResult): string => (skipped !== null || !control.ran ? "-" : control.red ? "red" : "GREEN");
const verdict = (result: ScenarioResult): string => (result.skipped !== null ? "not run" : isGood(result) ? "ok" : "BROKEN");

const HEAD = ["scenario", "promise", "seed", "n", "faults", "violations", "upper95", "p50 ms", "p99 ms", "control", ""];
const cells = (result: ScenarioResult): readonly string[] => [
  result.scenario,
  result.promise,
  String(result.seed),
  String(result.n),
  String(result.faults),
  String(result.violations),
  share(result.upper95),
  figure(result.p50Ms),
  figure(result.p99Ms),
  controlWord(result),
  verdict(result),
];

export const tableOf = ({ results }: Card): string => {
  const rows = [HEAD, ...results.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return `${rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n")}\n`;
};

const runOf = ({ commit: at, date, machine }: NonNullable<ScenarioResult["again"]>): string =>
  [`commit ${at}`, date, machine].filter((part) => part !== undefined).join(", ");

export const markdownOf = (card: Card): string => {
  const row = (words: readonly string[]): string => `| ${words.join(" | ")} |`;
  const lines = card.results.map((result) => row([result.scenario, result.promise, result.claim, ...cells(result).slice(2)]));
  const later = card.results.flatMap(({ scenario, again }) => (again === undefined ? [] : [`\`${scenario}\` (${runOf(again)})`]));
  const controls = card.results.map(({ scenario, control }) => `- \`${scenario}\`: ${control.how}`);
  return [
    "# Reliability: what was tested, and what held",
    "",
    "Generated by `npm run chaos -- --write`; the figures are in [reliability.json](reliability.json).",
    "",
    `Commit ${card.commit}, ${card.date}, ${card.machine}; ${card.scale}.${later.length === 0 ? "" : ` Run later by themselves: ${later.join(", ")}.`}`,
    "",
    "`n` counts the chances to break the promise, mostly commands answered 2xx. If none broke it, `upper95` bounds the share that still might, with 95 %",
    "confidence (3/n). Milliseconds are from a request to the ack of its result, including faults, unless the scenario says otherwise.",
    "Each scenario runs once more with its guarantee broken on purpose; `red` means that the checker noticed.",
    "",
    row(["scenario", "promise", "claim", ...HEAD.slice(2)]),
    row(Array.from({ length: HEAD.length + 1 }, () => "---")),
    ...lines,
    "",
    "How each control breaks the guarantee, and the violation that the checker must report:",
    "",
    ...controls,
    "",
  ].join("\n");
};
