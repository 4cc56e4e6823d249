// The rules of rollouts without a world: what is allowed in which state, when a rollout stops, and when windows open.
import { describe, expect, test } from "vitest";
import { ROLLOUT_ACTIONS, ROLLOUT_STATUSES } from "../../../protocol/index.ts";
import { isAppError } from "../../../server/core/errors.ts";
import { exceeds, wilsonLower } from "../../../server/core/many/threshold.ts";
import { boundsOf, phaseAt, phasesOf, sizesOf } from "../../../server/features/rollouts/rules/phases.ts";
import { isOutOfReach, rampOf } from "../../../server/features/rollouts/rules/ramp.ts";
import { isAllowed, LEADS_TO, move, NEXT, requireAllowed, type Situation } from "../../../server/features/rollouts/rules/states.ts";
import { checkWindows, instantOf, nextOpening, openUntil } from "../../../server/features/rollouts/rules/windows.ts";

const SITUATIONS: readonly Situation[] = ROLLOUT_STATUSES.flatMap((status) =>
  [0, 1, 2].flatMap((phase) =>
    [0, 3].flatMap((failures) =>
      [true, false].flatMap((isRollback) =>
        [null, "no way back"].map((rollbackProblem) => ({
          status,
          phase,
          phases: 2,
          failures,
          isRollback,
          rollbackProblem,
          needsApproval: false,
          isSettled: true,
        })),
      ),
    ),
  ),
);

describe("states", () => {
  test("every pair of states is either listed or refused", () => {
    for (const from of ROLLOUT_STATUSES)
      for (const to of ROLLOUT_STATUSES) {
        if (NEXT[from].includes(to)) expect(move(from, to)).toBe(to);
        else expect(() => move(from, to)).toThrow(`from ${from} to ${to}`);
      }
  });

  test("what has ended goes nowhere but back", () => {
    for (const status of ["completed", "failed", "aborted"] as const) expect(NEXT[status]).toEqual(["rolling_back"]);
    expect(NEXT.rolled_back).toEqual([]);
  });

  test("an action is refused, with the states that can follow, exactly where it is not shown", () => {
    for (const situation of SITUATIONS)
      for (const action of ROLLOUT_ACTIONS) {
        const refused = (() => {
          try {
            requireAllowed(action, situation);
            return null;
          } catch (error) {
            return error;
          }
        })();
        expect([action, situation, refused === null]).toEqual([action, situation, isAllowed(action, situation)]);
        if (refused === null) continue;
        expect(isAppError(refused) && [refused.code, refused.details]).toEqual([
          "INVALID_STATE_TRANSITION",
          { from: situation.status, to: LEADS_TO[action], allowed: [...NEXT[situation.status]], action },
        ]);
      }
  });

  test("an allowed action leads to a state that the table lists", () => {
    for (const situation of SITUATIONS)
      for (const action of ["pause", "abort", "reject", "rollback"] as const)
        if (isAllowed(action, situation))
          expect([situation.status, NEXT[situation.status]]).toEqual([situation.status, expect.arrayContaining([LEADS_TO[action]])]);
  });
});

describe("phases", () => {
  const phase = (percent: number | null, count: number | null = null) => ({
    percent,
    count,
    tag: null,
    minSuccessPercent: 90,
    soakMinutes: 0,
    requireApproval: false,
  });

  test("take shares rounded up, and the last one takes the rest", () => {
    expect(sizesOf([phase(null, 10), phase(null, 100), phase(1)], 300)).toEqual([10, 100, 190]);
    expect(sizesOf([phase(1), phase(50), phase(49)], 7)).toEqual([1, 4, 2]);
    expect(sizesOf([phase(null, 10), phase(100)], 4)).toEqual([4, 0]);
    expect(sizesOf([phase(100)], 0)).toEqual([0]);
  });

  test("each device belongs to one of them, by its position", () => {
    const bounds = boundsOf(phasesOf([phase(null, 2), phase(null, 3), phase(1)], [2, 3, 1]));
    expect(bounds).toEqual([2, 5, 6]);
    expect([0, 1, 2, 3, 5, 6].map((position) => phaseAt(bounds, position))).toEqual([null, 1, 1, 2, 2, 3]);
  });
});

const CONFIDENT = { percent: 10, count: null, minSample: null };

describe("the threshold", () => {
  test("waits for three devices and two failures, and then for certainty", () => {
    expect(exceeds({ succeeded: 0, failures: 1, size: 300 }, CONFIDENT)).toBe(false);
    expect(exceeds({ succeeded: 0, failures: 2, size: 300 }, CONFIDENT)).toBe(false);
    expect(exceeds({ succeeded: 0, failures: 3, size: 300 }, CONFIDENT)).toBe(true);
    expect(exceeds({ succeeded: 1, failures: 2, size: 300 }, CONFIDENT)).toBe(true);
    expect(exceeds({ succeeded: 17, failures: 2, size: 300 }, CONFIDENT)).toBe(false);
  });

  test("stops when it cannot get better, at a number of failures, and by the plain share if asked to", () => {
    expect(exceeds({ succeeded: 280, failures: 31, size: 300 }, { ...CONFIDENT, percent: 10 })).toBe(true);
    expect(exceeds({ succeeded: 200, failures: 4, size: 300 }, { ...CONFIDENT, count: 4 })).toBe(true);
    expect(exceeds({ succeeded: 9, failures: 1, size: 300 }, { ...CONFIDENT, minSample: 10 })).toBe(false);
    expect(exceeds({ succeeded: 8, failures: 2, size: 300 }, { ...CONFIDENT, minSample: 10 })).toBe(true);
  });

  test("compares with the lower bound of the 90 % Wilson interval", () => {
    // Computed by hand: (p + z²/2n - z √(p(1-p)/n + z²/4n²)) / (1 + z²/n) with z = 1.28.
    expect(wilsonLower(3, 3)).toBeCloseTo(0.6468, 3);
    expect(wilsonLower(2, 20)).toBeCloseTo(0.0424, 3);
    expect(wilsonLower(0, 50)).toBe(0);
    expect(wilsonLower(0, 0)).toBe(0);
  });

  test("a phase fails as soon as its share of successes is out of reach", () => {
    expect(isOutOfReach(1, 10, 90)).toBe(false);
    expect(isOutOfReach(2, 10, 90)).toBe(true);
    expect(isOutOfReach(1, 10, 100)).toBe(true);
  });

  test("the ramp grows with what has succeeded and does not refill the place of a failed device", () => {
    expect([rampOf(0, 0), rampOf(0, 3), rampOf(0, 5), rampOf(40, 0), rampOf(40, 39), rampOf(2, 9)]).toEqual([5, 2, 1, 40, 1, 1]);
  });
});

const utc = (at: Date | null): string | null => at?.toISOString().slice(0, 16) ?? null;
const opening = (timezone: string, cron: string, after: string): string | null =>
  utc(nextOpening([{ cron, durationMinutes: 60, timezone }], new Date(`${after}:00Z`)));

describe("windows", () => {
  // By hand, from the zones' laws: the clock of the zone, the window, and the instant in UTC.
  test.each([
    ["the spring gap of Berlin opens at the shift", "Europe/Berlin", "30 2 * * *", "2027-03-27T12:00", "2027-03-28T01:00"],
    ["the day after it is summer time in Berlin", "Europe/Berlin", "30 2 * * *", "2027-03-28T12:00", "2027-03-29T00:30"],
    ["the repeated hour of Berlin opens at the first", "Europe/Berlin", "30 2 * * *", "2027-10-30T12:00", "2027-10-31T00:30"],
    ["and not again at the second", "Europe/Berlin", "30 2 * * *", "2027-10-31T00:30", "2027-11-01T01:30"],
    ["the spring gap of New York", "America/New_York", "30 2 * * *", "2027-03-13T12:00", "2027-03-14T07:00"],
    ["the repeated hour of New York", "America/New_York", "30 1 * * *", "2027-11-06T12:00", "2027-11-07T05:30"],
    ["Kolkata has half an hour and no shift", "Asia/Kolkata", "0 2 * * *", "2027-03-27T22:00", "2027-03-28T20:30"],
    ["Lord Howe shifts by half an hour in spring", "Australia/Lord_Howe", "15 2 * * *", "2027-10-02T12:00", "2027-10-02T15:30"],
    ["Lord Howe repeats half an hour in autumn", "Australia/Lord_Howe", "45 1 * * *", "2027-04-03T12:00", "2027-04-03T14:45"],
    ["UTC knows no shift", "UTC", "30 2 * * *", "2027-03-27T12:00", "2027-03-28T02:30"],
  ])("%s", (_what, timezone, cron, after, expected) => {
    expect(opening(timezone, cron, after)).toBe(expected);
  });

  test("Casablanca leaves its time for the month of Ramadan and comes back", () => {
    // In 2027 from 7 February to 14 March the clock stands at UTC, otherwise at UTC+1.
    const zone = "Africa/Casablanca";
    expect([
      opening(zone, "0 12 * * *", "2027-01-10T00:00"),
      opening(zone, "0 12 * * *", "2027-02-20T00:00"),
      opening(zone, "0 12 * * *", "2027-04-10T00:00"),
    ]).toEqual(["2027-01-10T11:00", "2027-02-20T12:00", "2027-04-10T11:00"]);
  });

  test("last as time that passes, and overlapping ones are one", () => {
    const one = { cron: "0 1 * * *", durationMinutes: 180, timezone: "Europe/Berlin" };
    const other = { cron: "0 3 * * *", durationMinutes: 60, timezone: "UTC" };
    const at = (text: string): Date => new Date(`${text}:00Z`);
    const until = (windows: Parameters<typeof openUntil>[0], text: string): string | null => {
      const found = openUntil(windows, at(text));
      return found === "always" ? found : utc(found);
    };
    // The night of the shift: three hours later it is five o'clock.
    expect(until([one], "2027-03-28T00:30")).toBe("2027-03-28T03:00");
    expect(until([one], "2027-03-28T03:00")).toBeNull();
    expect(until([one, other], "2027-03-28T00:30")).toBe("2027-03-28T04:00");
    expect(until([], "2027-03-28T00:30")).toBe("always");
  });

  test("an instant is found again from what the clock shows", () => {
    expect(new Date(instantOf("Europe/Berlin", Date.UTC(2027, 6, 1, 12))).toISOString()).toBe("2027-07-01T10:00:00.000Z");
  });

  test.each([
    ["0 2 * * * *", "UTC", "cron"],
    ["@daily", "UTC", "cron"],
    ["0 25 * * *", "UTC", "cron"],
    ["0 2 * * *", "+03:00", "timezone"],
    ["0 2 * * *", "Mars/Olympus", "timezone"],
  ])("%s in %s cannot be read", (cron, timezone, field) => {
    expect(() => checkWindows([{ cron, durationMinutes: 60, timezone }], new Date())).toThrow(
      expect.objectContaining({ code: "CRON_INVALID", details: expect.objectContaining({ field, at: 1 }) }),
    );
  });

  test("a window that never opens is refused", () => {
    expect(() => checkWindows([{ cron: "0 0 30 2 *", durationMinutes: 60, timezone: "UTC" }], new Date())).toThrow(
      expect.objectContaining({ code: "WINDOW_NEVER_OPENS" }),
    );
  });
});

/** A fixed sequence, so that a run is the same each time. */
const dice = (seed: number) => {
  let state = seed;
  return (): number => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
};

/** A rollout over phases of 10, 100 and the rest, one device after another, by the rules alone. */
const stops = (failing: number, random: () => number): boolean => {
  let [succeeded, failures] = [0, 0];
  for (const size of [10, 100, 190]) {
    let failed = 0;
    for (let device = 0; device < size; device += 1) {
      if (random() < failing) [failures, failed] = [failures + 1, failed + 1];
      else succeeded += 1;
      if (exceeds({ succeeded, failures, size: 300 }, CONFIDENT) || isOutOfReach(failed, size, 90)) return true;
    }
  }
  return false;
};

describe("300 devices in phases of 10, 100 and the rest", () => {
  test("5 % failing: at most 6 of 20 rollouts stop; 15 % failing: all of them", () => {
    const random = dice(20_261_124);
    const stopped = (failing: number): number => Array.from({ length: 20 }, () => stops(failing, random)).filter(Boolean).length;
    expect(stopped(0.05)).toBeLessThanOrEqual(6);
    expect(stopped(0.15)).toBe(20);
  });
});
