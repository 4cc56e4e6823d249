// The kit that judges agents finds nothing wrong with right agents, and each case finds the agent that is broken for it.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allCases, SUITES } from "../../../protocol/agent-kit/cases/suites.ts";
import type { CaseResult } from "../../../protocol/agent-kit/verdict.ts";
import { ROOT } from "../../flows/processes.ts";
import { BROKEN } from "./broken.ts";
import { buildJudged, type JudgedProgram } from "./judge.ts";

const SUITE_MS = 240_000;
/** They need something of the machine: the right to mount, or libfaketime. */
const MAY_BE_UNSEEN = ["JOURNAL-4", "SIGN-3"];
const PYTHON = ["/usr/bin/python3", join(ROOT, "protocol/examples/python/agent.py")];

let program: JudgedProgram;
beforeAll(async () => {
  program = await buildJudged();
}, 60_000);
afterAll(() => program.remove());

const wrong = (results: readonly CaseResult[]) =>
  results
    .filter(({ id, verdict }) => verdict === "fail" || (verdict === "not observable" && !MAY_BE_UNSEEN.includes(id)))
    .map(({ id, finding, why }) => ({ id, finding, why }));
const idsOf = (name: string): readonly string[] => SUITES.find((suite) => suite.name === name)?.cases.map(({ id }) => id) ?? [];

test.each(SUITES.map(({ name }) => [name] as const))("the reference agent passes suite %s", { timeout: SUITE_MS }, async (name) => {
  const results = await program.judge(idsOf(name));
  expect(results).toHaveLength(idsOf(name).length);
  expect(wrong(results)).toEqual([]);
});

test("the Python example passes suite core", { timeout: SUITE_MS }, async () => {
  expect(wrong(await program.judge(idsOf("core"), undefined, PYTHON))).toEqual([]);
});

describe("a broken agent", () => {
  test("stands beside each case", () =>
    expect(Object.keys(BROKEN).sort()).toEqual(
      allCases()
        .map(({ id }) => id)
        .sort(),
    ));

  test("fails its case, for a rule that the case judges", { timeout: 2 * SUITE_MS }, async () => {
    const waiting = allCases().toSorted((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0));
    const found: CaseResult[] = [];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) found.push(...(await program.judge([next.id], next.id)));
    };
    await Promise.all(Array.from({ length: 10 }, work));
    const missed = found.filter(({ id, verdict }) => verdict === "pass" || (verdict === "not observable" && !MAY_BE_UNSEEN.includes(id)));
    expect(missed.map(({ id, why }) => ({ id, why }))).toEqual([]);
    const rulesOf = (id: string): readonly string[] => allCases().find((each) => each.id === id)?.rules ?? [];
    const elsewhere = found.filter(({ id, finding }) => finding !== null && !rulesOf(id).includes(finding.rule));
    expect(elsewhere.map(({ id, finding }) => ({ id, finding }))).toEqual([]);
  });
});
