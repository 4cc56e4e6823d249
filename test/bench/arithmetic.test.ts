// The bench's arithmetic, on figures that a person can check: which windows count, how rounds are paired, when a target is met.
import { describe, expect, test } from "vitest";
import { cost, foreignShare, median, meets, orderOf, qualityOf, quantile, ratios, summarise, type Visit, wantsMore } from "./arithmetic.ts";

const SECOND = 1_000_000_000;
const visit = (differences: Partial<Visit> = {}): Visit => ({
  answers: 100_000,
  windowNs: SECOND,
  serverNs: SECOND,
  loadNs: 0.8 * SECOND,
  oursNs: 1.9 * SECOND,
  busyNs: 1.95 * SECOND,
  ...differences,
});

describe("windows", () => {
  test("a window counts if the server is busy and no other process uses the machine", () => expect(qualityOf(visit(), 2)).toBe("clean"));
  test("a window does not count if other processes use more than a twentieth of the machine", () => {
    expect(foreignShare(visit({ oursNs: 1.7 * SECOND }), 2)).toBeCloseTo(0.125);
    expect(qualityOf(visit({ oursNs: 1.7 * SECOND }), 2)).toBe("foreign");
  });
  test("a window is client-bound if the server is not busy", () =>
    expect(qualityOf(visit({ serverNs: 0.9 * SECOND, oursNs: 1.85 * SECOND, busyNs: 1.86 * SECOND }), 2)).toBe("client-bound"));
  test("the foreign share is never negative", () => expect(foreignShare(visit({ busyNs: 1.8 * SECOND }), 2)).toBe(0));
  test("the cost of a message is the server's time per answer", () => expect(cost(visit())).toBe(10));
});

describe("rounds", () => {
  const round = (bare: Partial<Visit>, ours: Partial<Visit>) =>
    new Map([
      ["bare", visit(bare)],
      ["ours", visit(ours)],
    ]);
  const all = () => true;
  test("a ratio pairs two subjects round by round", () => {
    const rounds = [round({ answers: 200_000 }, { answers: 100_000 }), round({ answers: 100_000 }, { answers: 100_000 })];
    expect(ratios(rounds, { of: "bare", by: "ours" }, all)).toEqual([0.5, 1]);
  });
  test("a pair is dropped if one of its windows does not count", () => {
    const rounds = [round({}, {}), round({}, { serverNs: 0.5 * SECOND })];
    expect(ratios(rounds, { of: "bare", by: "ours" }, ({ serverNs }) => serverNs === SECOND)).toEqual([1]);
  });
  test("more rounds follow while other processes spoil them, until three are clean", () => {
    const spoilt = { oursNs: 1.7 * SECOND };
    const idle = { serverNs: 0.5 * SECOND, oursNs: 1.45 * SECOND, busyNs: 1.5 * SECOND };
    const [good, bad, bound] = [round({}, {}), round({}, spoilt), round({}, idle)];
    const asks = (...rounds: Parameters<typeof wantsMore>[0][number][]) => wantsMore(rounds, [{ of: "bare", by: "ours" }], (each) => qualityOf(each, 2));
    expect([asks(good, bad, good, bad), asks(good, bad, good, good), asks(good, good)]).toEqual([true, false, false]);
    // A server that is never busy would not be busy in another round either.
    expect(asks(bound, bound, bound)).toBe(false);
  });
  test("every second round visits the subjects in reverse", () => {
    expect(orderOf(["a", "b", "c"], 0)).toEqual(["a", "b", "c"]);
    expect(orderOf(["a", "b", "c"], 1)).toEqual(["c", "b", "a"]);
  });
  test("a summary gives the median and the span of the rounds", () => {
    expect(summarise([3, 1, 2])).toEqual({ value: 2, min: 1, max: 3, rounds: [3, 1, 2] });
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
    expect(quantile([5, 1, 4, 2, 3], 0.99)).toBe(5);
  });
});

describe("targets", () => {
  test("a target is met within a twentieth on its worse side", () => {
    expect([meets(0.78, 0.82, "more"), meets(0.77, 0.82, "more"), meets(1_680, 1_600, "less"), meets(1_700, 1_600, "less")]).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });
});
