// `restic forget` keeps what test/features/backup-policies takes for granted that it keeps.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { localTimes, type Recorded, recorded, rules, type Zone, zones } from "../../features/backup-policies/retention-rounds.ts";

interface Snapshot {
  readonly id: string;
  readonly time: string;
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "retention-"));
  writeFileSync(join(folder, "file"), "content");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A snapshot carries the offset of the zone in which it was made. */
const restic = (zone: Zone, ...args: readonly string[]): string =>
  execFileSync("restic", args, {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: folder, TZ: zone, RESTIC_REPOSITORY: join(folder, zone.replace("/", "-")), RESTIC_PASSWORD: "p" },
  });

test.each(zones)("restic keeps what is recorded of it, in %s", { timeout: 120_000 }, (zone) => {
  restic(zone, "init");
  for (const time of localTimes[zone]) restic(zone, "backup", "--quiet", "--time", time, join(folder, "file"));
  const snapshots = JSON.parse(restic(zone, "snapshots", "--json")) as readonly Snapshot[];
  const ids = snapshots.map(({ id }) => id);
  const kept = rules[zone].map(({ keepLast, keepHourly, keepDaily, keepWeekly, keepMonthly, keepYearly }) => {
    const counts = { last: keepLast, hourly: keepHourly, daily: keepDaily, weekly: keepWeekly, monthly: keepMonthly, yearly: keepYearly };
    const flags = Object.entries(counts).flatMap(([name, count]) => (count === null ? [] : [`--keep-${name}`, String(count)]));
    const [group] = JSON.parse(restic(zone, "forget", "--dry-run", "--json", "--group-by", "", ...flags)) as readonly { readonly keep: readonly Snapshot[] }[];
    return (group?.keep ?? []).map(({ id }) => ids.indexOf(id)).sort((a, b) => a - b);
  });
  const found: Recorded = { times: snapshots.map(({ time }) => time), kept };
  expect(found).toEqual(recorded[zone]);
});
