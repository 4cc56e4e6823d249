// Backups and rules by which `restic forget` and the gateway must keep the same: random, and the same in every run. restic-keeps.json is what restic kept,
// as test/release/backups/retention-oracle.test.ts finds it again; asking restic costs a quarter of a second for each backup and each rule.
import { readFileSync } from "node:fs";
import type { RetentionRules } from "../../../server/core/retention.ts";

export const NONE: RetentionRules = {
  keepLast: null,
  keepHourly: null,
  keepDaily: null,
  keepWeekly: null,
  keepMonthly: null,
  keepYearly: null,
  keepWithin: null,
  maxAgeDays: null,
  maxTotalGB: null,
};

/** How many backups each zone gets. */
const ZONES = { UTC: 16, "America/St_Johns": 12, "Australia/Lord_Howe": 12 } as const;
export type Zone = keyof typeof ZONES;
export const zones = Object.keys(ZONES) as readonly Zone[];
const ROUNDS = 5;

let seed = 20_261_124;
const random = (below: number): number => {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
  return Math.floor((seed / 4_294_967_296) * below);
};

const inEachZone = <T>(make: (zone: Zone) => T): Readonly<Record<Zone, T>> => ({
  UTC: make("UTC"),
  "America/St_Johns": make("America/St_Johns"),
  "Australia/Lord_Howe": make("Australia/Lord_Howe"),
});

/** As restic reads them, in the local time of the zone. */
export const localTimes = inEachZone((zone) =>
  Array.from({ length: ZONES[zone] }, () => {
    const at = new Date(Date.UTC(2025, 0, 1) + random(zone === "UTC" ? 500 : 30) * 86_400_000 + random(86_400) * 1_000);
    return at.toISOString().slice(0, 19).replace("T", " ");
  }),
);

const someRules = (): RetentionRules => {
  const [last, keepHourly = null, keepDaily = null, keepWeekly = null, keepMonthly = null, keepYearly = null] = Array.from({ length: 6 }, () =>
    random(2) === 0 ? null : 1 + random(9),
  );
  return { ...NONE, keepLast: last ?? 1, keepHourly, keepDaily, keepWeekly, keepMonthly, keepYearly };
};
export const rules = inEachZone(() => Array.from({ length: ROUNDS }, someRules));

/** What restic kept. */
export interface Recorded {
  readonly times: readonly string[];
  /** The places among the times of what each of the rules keeps. */
  readonly kept: readonly (readonly number[])[];
}
export const recorded = JSON.parse(readFileSync(new URL("restic-keeps.json", import.meta.url), "utf8")) as Readonly<Record<Zone, Recorded>>;
