// Schedules of policies over changes of the clocks, and retention, judged by what `restic forget` keeps.
import { describe, expect, test } from "vitest";
import { fatesOf, faultIn } from "../../../server/core/retention.ts";
import { dueSince, jitterOf, localText, noteOf, readSchedule } from "../../../server/features/backup-policies/schedule.ts";
import { NONE, recorded, rules, zones } from "./retention-rounds.ts";

describe("a schedule", () => {
  const NOW = new Date("2026-03-27T12:00:00Z");
  test.each(["", "* * * *", "0 0 * * * *", "0 0 30 2 *", "61 * * * *", "@yearly", "nonsense a b c d"])("%j is refused", (text) => {
    expect(() => readSchedule(text, "Europe/Lisbon", NOW)).toThrow();
  });
  test("runs a skipped local time once, at the shift, and a repeated one once", () => {
    const spring = readSchedule("30 1 * * *", "Europe/Lisbon", NOW).nextRuns(NOW, 4);
    expect(spring.map((at) => localText(at, "Europe/Lisbon"))).toEqual(["2026-03-28T01:30", "2026-03-29T02:00", "2026-03-30T01:30", "2026-03-31T01:30"]);
    expect(spring.map((at) => noteOf(at, "Europe/Lisbon") !== null)).toEqual([false, true, false, false]);
    const autumn = readSchedule("30 1 * * *", "Europe/Lisbon", NOW).nextRuns(new Date("2026-10-24T12:00:00Z"), 2);
    expect(autumn.map((at) => localText(at, "Europe/Lisbon"))).toEqual(["2026-10-25T01:30", "2026-10-26T01:30"]);
  });
  test("counts the times that passed while nobody looked, and goes on from the scheduled time", () => {
    const daily = readSchedule("0 2 * * *", "UTC", NOW);
    const due = dueSince(daily, new Date("2026-03-24T02:00:00Z"), NOW);
    expect(due).toEqual({ latest: new Date("2026-03-27T02:00:00Z"), passed: 4, next: new Date("2026-03-28T02:00:00Z") });
  });
  test("delays each device by the same time, within its bound", () => {
    const delays = Array.from({ length: 200 }, (_, n) => jitterOf("bpl_1", `dev_${n}`, 300));
    expect(delays).toEqual(Array.from({ length: 200 }, (_, n) => jitterOf("bpl_1", `dev_${n}`, 300)));
    expect([Math.min(...delays) >= 0, Math.max(...delays) <= 300, new Set(delays).size > 100]).toEqual([true, true, true]);
  });
});

describe("retention", () => {
  test("refuses rules that keep nothing or are negative", () => {
    for (const bad of [{}, { keepLast: 0 }, { keepDaily: -1 }, { keepWithin: "soon" }, { keepWithin: "0d" }, { maxTotalGB: 0 }])
      expect(faultIn({ ...NONE, ...bad })).not.toBeNull();
    expect(faultIn({ ...NONE, keepLast: 1 })).toBeNull();
  });
  test("never deletes the newest backup, nor one that is held or in use", () => {
    const at = (day: number): Date => new Date(Date.UTC(2026, 0, day));
    const backups = [1, 2, 3, 400].map((day) => ({ id: `b${day}`, at: at(day), bytes: 9e12, ...(day === 1 ? { protectedBy: "held" as const } : {}) }));
    const kept = fatesOf(backups, { ...NONE, keepLast: 4, maxAgeDays: 1, maxTotalGB: 0.001 }, "UTC").filter(({ keep }) => keep);
    expect(kept.map(({ id }) => id)).toEqual(["b400", "b1"]);
  });

  test.each(zones)("keeps the backups that restic keeps, by random rules, in %s", (zone) => {
    const { times, kept } = recorded[zone];
    const backups = times.map((time, n) => ({ id: String(n), at: new Date(time), bytes: 1 }));
    for (const [round, each] of rules[zone].entries()) {
      const ours = fatesOf(backups, each, zone).filter(({ keep }) => keep);
      expect([each, ours.map(({ id }) => Number(id)).sort((a, b) => a - b)]).toEqual([each, kept[round]]);
    }
  });
});
