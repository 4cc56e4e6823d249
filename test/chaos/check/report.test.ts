// The report card: a single scenario that runs again replaces its row and is marked.
import { expect, test } from "vitest";
import { type Card, markdownOf, withAgain } from "./report.ts";

const result = (scenario: string, red: boolean): Card["results"][number] => ({
  promise: "R1",
  scenario,
  claim: `${scenario} holds`,
  seed: 1,
  n: 100,
  faults: 1,
  violations: 0,
  broken: {},
  upper95: 0.03,
  p50Ms: 10,
  p99Ms: 20,
  control: { ran: true, red, how: "it is broken" },
  skipped: null,
  notes: [],
});
const card: Card = { commit: "aaa", date: "2026-01-01", machine: "this one", scale: "full", results: [result("one", true), result("two", false)] };
const later: Card = { ...card, commit: "bbb", date: "2026-01-02", results: [result("two", true)] };

test("a scenario that runs again replaces only its own row and shows commit and date", () => {
  const merged = withAgain(card, later);
  expect(merged).toMatchObject({
    commit: "aaa",
    results: [{ scenario: "one" }, { scenario: "two", control: { red: true }, again: { commit: "bbb", date: "2026-01-02" } }],
  });
  expect(markdownOf(merged ?? card)).toContain("Run later by themselves: `two` (commit bbb, 2026-01-02).");
});

test("a scenario that the card lacks gets a row, and one of another machine names it", () => {
  const merged = withAgain(card, { ...later, machine: "another", results: [result("three", true)] });
  expect(merged?.results.map(({ scenario }) => scenario)).toEqual(["one", "two", "three"]);
  expect(markdownOf(merged ?? card)).toContain("`three` (commit bbb, 2026-01-02, another)");
});

test("a card never mixes runs of different scales", () => {
  expect(withAgain(card, { ...later, scale: "short" })).toBeNull();
});
