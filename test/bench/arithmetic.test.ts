// The bench's own sums, on figures that a person can check: what voids a window, how rounds are paired, when a target is met.
import { describe, expect, test } from "vitest";
import { cost, foreignShare, judge, median, meets, orderOf, quantile, ratios, summarise, type Visit, wantsMore } from "./arithmetic.ts";

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

describe("a window", () => {
  test("counts when the server is busy and the machine is ours", () => expect(judge(visit(), 2)).toBe("clean"));
  test("is void when somebody else used more than a twentieth of the machine", () => {
    expect(foreignShare(visit({ oursNs: 1.7 * SECOND }), 2)).toBeCloseTo(0.125);
    expect(judge(visit({ oursNs: 1.7 * SECOND }), 2)).toBe("foreign");
  });
  test("is the client's when the server had time to spare", () =>
    expect(judge(visit({ serverNs: 0.9 * SECOND, oursNs: 1.85 * SECOND, busyNs: 1.86 * SECOND }), 2)).toBe("client-bound"));
  test("never shows less than no foreign load", () => expect(foreignShare(visit({ busyNs: 1.8 * SECOND }), 2)).toBe(0));
  test("costs the server's time by its answers", () => expect(cost(visit())).toBe(10));
});

describe("rounds", () => {
  const round = (bare: Partial<Visit>, ours: Partial<Visit>) =>
    new Map([
      ["bare", visit(bare)],
      ["ours", visit(ours)],
    ]);
  const all = () => true;
  test("are paired one by one", () => {
    const rounds = [round({ answers: 200_000 }, { answers: 100_000 }), round({ answers: 100_000 }, { answers: 100_000 })];
    expect(ratios(rounds, { of: "bare", by: "ours" }, all)).toEqual([0.5, 1]);
  });
  test("drop a pair of which one half does not count", () => {
    const rounds = [round({}, {}), round({}, { serverNs: 0.5 * SECOND })];
    expect(ratios(rounds, { of: "bare", by: "ours" }, ({ serverNs }) => serverNs === SECOND)).toEqual([1]);
  });
  test("are asked for again while others spoil them, until three are clean", () => {
    const spoilt = { oursNs: 1.7 * SECOND };
    const idle = { serverNs: 0.5 * SECOND, oursNs: 1.45 * SECOND, busyNs: 1.5 * SECOND };
    const [good, bad, bound] = [round({}, {}), round({}, spoilt), round({}, idle)];
    const asks = (...rounds: Parameters<typeof wantsMore>[0][number][]) => wantsMore(rounds, [{ of: "bare", by: "ours" }], (each) => judge(each, 2));
    expect([asks(good, bad, good, bad), asks(good, bad, good, good), asks(good, good)]).toEqual([true, false, false]);
    // A server that is never busy will not be in another round either.
    expect(asks(bound, bound, bound)).toBe(false);
  });
  test("go there and back", () => {
    expect(orderOf(["a", "b", "c"], 0)).toEqual(["a", "b", "c"]);
    expect(orderOf(["a", "b", "c"], 1)).toEqual(["c", "b", "a"]);
  });
  test("are told by their median and their span", () => {
    expect(summarise([3, 1, 2])).toEqual({ value: 2, min: 1, max: 3, rounds: [3, 1, 2] });
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
    expect(quantile([5, 1, 4, 2, 3], 0.99)).toBe(5);
  });
});

describe("a target", () => {
  test("forgives a twentieth, in the direction that is worse", () => {
    expect([meets(0.78, 0.82, "more"), meets(0.77, 0.82, "more"), meets(1_680, 1_600, "less"), meets(1_700, 1_600, "less")]).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });
});
