// What people, scripts and CI systems read of a run.
import type { BrokenRule, CaseResult } from "./verdict.ts";

const SYMBOLS = { pass: "pass", fail: "FAIL", "not observable": "----" } as const;

export interface ReportOptions {
  readonly out: string;
  /** The command that runs one case again. */
  readonly again: (id: string) => string;
  /** Cases that may fail. */
  readonly known: ReadonlySet<string>;
}

const lineOf = ({ rule, due, seen }: BrokenRule): string => `         due (${rule}): ${due}\n         seen: ${seen}\n`;

export const resultText = ({ id, title, verdict, finding, hints, why, ms }: CaseResult, { out, again, known }: ReportOptions): string => {
  const head = `${SYMBOLS[verdict]} ${id.padEnd(11)} ${title} (${(ms / 1_000).toFixed(1)} s)${verdict === "fail" && known.has(id) ? ", known" : ""}\n`;
  const failure = finding === null ? "" : `${lineOf(finding)}         trace: ${out}/traces/${id}.ndjson\n         again: ${again(id)}\n`;
  return (
    head + failure + (why === null ? "" : `         ${why}\n`) + hints.map((hint) => `         hint (${hint.rule}): ${hint.due}; seen: ${hint.seen}\n`).join("")
  );
};

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly notObservable: number;
  /** What makes the run fail: failures that nobody knew of, and known ones that pass. */
  readonly reasons: readonly string[];
}

export const totalsOf = (results: readonly CaseResult[], known: ReadonlySet<string>): Totals => {
  const of = (verdict: CaseResult["verdict"]): readonly CaseResult[] => results.filter((result) => result.verdict === verdict);
  return {
    passed: of("pass").length,
    failed: of("fail").length,
    notObservable: of("not observable").length,
    reasons: [
      ...of("fail").flatMap(({ id }) => (known.has(id) ? [] : [`${id} fails`])),
      ...of("pass").flatMap(({ id }) => (known.has(id) ? [`${id} passes, although it is listed as known`] : [])),
    ],
  };
};

const escaped = (text: string): string => text.replaceAll(/[<>&"]/g, (each) => `&#${each.charCodeAt(0)};`).replaceAll(/[^\P{Cc}\n\t]/gu, "�");

/** In the form that CI systems read. */
export const junitText = (results: readonly CaseResult[]): string => {
  const one = ({ id, suite, title, verdict, finding, why, ms }: CaseResult): string => {
    const inner =
      finding !== null
        ? `<failure message="${escaped(`${finding.rule}: ${finding.due}`)}">${escaped(finding.seen)}</failure>`
        : verdict === "pass"
          ? ""
          : `<skipped message="${escaped(why ?? "")}"/>`;
    return `  <testcase classname="${suite}" name="${escaped(`${id} ${title}`)}" time="${ms / 1_000}">${inner}</testcase>\n`;
  };
  const failures = results.filter(({ verdict }) => verdict === "fail").length;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="agent-kit" tests="${results.length}" failures="${failures}">\n${results.map(one).join("")}</testsuite>\n`;
};
