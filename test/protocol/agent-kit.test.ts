// Ties the documents of the agent protocol to the kit that judges agents: each rule has a case or says that it is untested, and each case judges rules.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { allCases, SUITES } from "../../protocol/agent-kit/cases/suites.ts";
import { KIT_HELP } from "../../protocol/agent-kit/kit-options.ts";

const FILES = ["README.md", "pairing.md", "levels.md", "reference.md", "apps.md", "carrier.md"];
const documents = FILES.map((name) => [name, readFileSync(new URL(`../../protocol/${name}`, import.meta.url), "utf8")] as const);
const RULE = /\*\*([RAC]\d+\.\d+)\*\*( \(untested\))?/g;
const rules = documents.flatMap(([file, text]) =>
  [...text.matchAll(RULE)].map(([, rule = "", untested]) => ({ file, rule, isUntested: untested !== undefined })),
);
const judged = new Set(allCases().flatMap((each) => each.rules));
const KIT = new URL("../../protocol/agent-kit/", import.meta.url);

test("each rule of the documents has a case, or says that it is untested, and not both", () => {
  expect(rules.length).toBeGreaterThan(90);
  expect(rules.filter(({ rule, isUntested }) => judged.has(rule) === isUntested).map(({ file, rule }) => `${file} ${rule}`)).toEqual([]);
});

test("each rule has one name in all documents", () => {
  const names = rules.map(({ rule }) => rule);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

test("each case judges rules, and the kit names none that the documents do not have", () => {
  const known = new Set(rules.map(({ rule }) => rule));
  expect(allCases().filter((each) => each.rules.length === 0)).toEqual([]);
  const named = readdirSync(KIT, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => [...readFileSync(new URL(name, KIT), "utf8").matchAll(/"([RAC]\d+\.\d+)"/g)].map(([, rule = ""]) => ({ name, rule })));
  expect(named.filter(({ rule }) => !known.has(rule))).toEqual([]);
});

test("each case has an id of its own, and names each rule that it speaks of", () => {
  const ids = allCases().map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const silent = allCases().flatMap(({ id, run, rules: own }) => {
    const spoken = [...run.toString().matchAll(/"([RAC]\d+\.\d+)"/g)].map(([, rule = ""]) => rule);
    return spoken.filter((rule) => !own.includes(rule)).map((rule) => `${id} ${rule}`);
  });
  // A case may lean on a rule that another one judges: that something arrives at all.
  expect(silent.filter((each) => !/ (R7\.1|R7\.3|R8\.4|R9\.3|R15\.3|R17\.3|A5\.1|A2\.4|A6\.1|C3\.1|R0\.4)$/.test(each))).toEqual([]);
});

test("the help names each suite with its number of cases", () => {
  for (const { name, cases } of SUITES) expect(KIT_HELP).toMatch(new RegExp(`  ${name} +${cases.length} cases`));
});
