// Retention of backups, by the rules of `restic forget`, which is the oracle of its tests. A pure function of the good backups of one app at one
// destination; calendars are those of the policy's time zone.

export interface RetentionRules {
  readonly keepLast: number | null;
  readonly keepHourly: number | null;
  readonly keepDaily: number | null;
  readonly keepWeekly: number | null;
  readonly keepMonthly: number | null;
  readonly keepYearly: number | null;
  readonly keepWithin: string | null;
  readonly maxAgeDays: number | null;
  readonly maxTotalGB: number | null;
}

export interface Retained {
  readonly id: string;
  readonly at: Date;
  readonly bytes: number;
  /** Nobody may delete it now: it is held, or a restore reads it. */
  readonly protectedBy?: "held" | "in_use" | undefined;
}

export interface Fate {
  readonly id: string;
  readonly keep: boolean;
  /** Why it stays, or why it goes. */
  readonly rules: readonly string[];
}

export interface Duration {
  readonly years: number;
  readonly months: number;
  readonly days: number;
  readonly hours: number;
}

const DURATION = /^(?=.)(?:(\d{1,4})y)?(?:(\d{1,4})m)?(?:(\d{1,5})d)?(?:(\d{1,6})h)?$/;
/** As restic writes it, such as `1y6m2d12h`; null for any other text, and for nothing at all. */
export const readDuration = (text: string): Duration | null => {
  const found = DURATION.exec(text);
  if (found === null) return null;
  const [years = 0, months = 0, days = 0, hours = 0] = found.slice(1).map((part) => Number(part ?? 0));
  return years + months + days + hours === 0 ? null : { years, months, days, hours };
};

const KEEP = ["keepLast", "keepHourly", "keepDaily", "keepWeekly", "keepMonthly", "keepYearly"] as const;
type Keep = (typeof KEEP)[number];

/** Null: the rules are valid. */
export const faultIn = (rules: RetentionRules): string | null => {
  const counts = [...KEEP, "maxAgeDays", "maxTotalGB"] as const;
  const negative = counts.find((name) => (rules[name] ?? 0) < 0);
  if (negative !== undefined) return `${negative} must not be negative`;
  if (rules.maxAgeDays === 0) return "maxAgeDays must be at least 1";
  if (rules.maxTotalGB === 0) return "maxTotalGB must be more than 0";
  if (rules.keepWithin !== null && readDuration(rules.keepWithin) === null) return "keepWithin must be a duration such as 30d or 1y6m2d12h";
  const isEmpty = counts.every((name) => (rules[name] ?? 0) === 0) && rules.keepWithin === null;
  return isEmpty ? "at least one rule must keep something" : null;
};

interface Local {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();
const MAX_FORMATS = 600;
const formatOf = (zone: string): Intl.DateTimeFormat => {
  const found = formats.get(zone);
  if (found !== undefined) return found;
  const numeric = "numeric";
  const made = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: numeric,
    month: numeric,
    day: numeric,
    hour: numeric,
    minute: numeric,
    second: numeric,
  });
  if (formats.size < MAX_FORMATS) formats.set(zone, made);
  return made;
};
const localOf = (at: Date, zone: string): Local => {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const part = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
  return { year: part("year"), month: part("month"), day: part("day"), hour: part("hour"), minute: part("minute"), second: part("second") };
};
const asUtc = ({ year, month, day, hour, minute, second }: Local): number => Date.UTC(year, month - 1, day, hour, minute, second);

/** How far the clocks of the zone are ahead of UTC at this moment, in minutes. */
export const offsetMinutes = (at: Date, zone: string): number => Math.round((asUtc(localOf(at, zone)) - Math.floor(at.getTime() / 1_000) * 1_000) / 60_000);

const DAY_MS = 86_400_000;
const isoWeek = ({ year, month, day }: Local): number => {
  const at = new Date(Date.UTC(year, month - 1, day));
  const thursday = new Date(at.getTime() + (3 - ((at.getUTCDay() + 6) % 7)) * DAY_MS);
  const first = Date.UTC(thursday.getUTCFullYear(), 0, 1);
  return thursday.getUTCFullYear() * 100 + Math.floor((thursday.getTime() - first) / (7 * DAY_MS)) + 1;
};

const BUCKETS: Readonly<Record<Keep, (at: Local, nth: number) => number>> = {
  keepLast: (_, nth) => nth,
  keepHourly: ({ year, month, day, hour }) => year * 1_000_000 + month * 10_000 + day * 100 + hour,
  keepDaily: ({ year, month, day }) => year * 10_000 + month * 100 + day,
  keepWeekly: isoWeek,
  keepMonthly: ({ year, month }) => year * 100 + month,
  keepYearly: ({ year }) => year,
};

/** The same clock time so much earlier, and then the hours by the clock of physics. */
const before = (at: Date, zone: string, { years, months, days, hours }: Duration): number => {
  const local = localOf(at, zone);
  const wanted = Date.UTC(local.year - years, local.month - 1 - months, local.day - days, local.hour, local.minute, local.second) + (at.getTime() % 1_000);
  // The offset at the target, found in two steps because it decides where the target is.
  const guess = wanted - offsetMinutes(new Date(wanted), zone) * 60_000;
  return wanted - offsetMinutes(new Date(guess), zone) * 60_000 - hours * 3_600_000;
};

const keptBy = (sorted: readonly Retained[], rules: RetentionRules, zone: string): ReadonlyMap<string, string[]> => {
  const reasons = new Map<string, string[]>(sorted.map(({ id }) => [id, []]));
  const [newest] = sorted;
  const within = rules.keepWithin === null || newest === undefined ? null : readDuration(rules.keepWithin);
  const since = within === null || newest === undefined ? null : before(newest.at, zone, within);
  const left = new Map(KEEP.map((name) => [name, { count: rules[name] ?? 0, last: Number.NaN }]));
  for (const [nth, { id, at }] of sorted.entries()) {
    const local = localOf(at, zone);
    for (const [name, bucket] of left) {
      const value = BUCKETS[name](local, nth);
      if (bucket.count === 0 || value === bucket.last) continue;
      bucket.last = value;
      bucket.count -= 1;
      reasons.get(id)?.push(name);
    }
    if (since !== null && at.getTime() > since) reasons.get(id)?.push("keepWithin");
  }
  return reasons;
};

const GIGABYTE = 1_000_000_000;

/**
 * What becomes of each backup. Give it good ones only, that is completed ones that no verification found damaged: others neither count nor go. The newest
 * one stays whatever the rules say.
 */
export const fatesOf = (backups: readonly Retained[], rules: RetentionRules, zone: string): readonly Fate[] => {
  const sorted = [...backups].sort((a, b) => b.at.getTime() - a.at.getTime() || (a.id < b.id ? 1 : -1));
  const reasons = keptBy(sorted, rules, zone);
  const hasKeepRule = rules.keepWithin !== null || KEEP.some((name) => (rules[name] ?? 0) > 0);
  const newestMs = sorted[0]?.at.getTime() ?? 0;
  let total = 0;
  return sorted.map(({ id, at, bytes, protectedBy }, nth): Fate => {
    const own = reasons.get(id) ?? [];
    const saved = [...(nth === 0 ? ["newest"] : []), ...(protectedBy === undefined ? [] : [protectedBy])];
    const isOld = rules.maxAgeDays !== null && newestMs - at.getTime() > rules.maxAgeDays * DAY_MS;
    const isWanted = (own.length > 0 || !hasKeepRule) && !isOld;
    const isTooMuch = rules.maxTotalGB !== null && total + bytes > rules.maxTotalGB * GIGABYTE;
    const keep = saved.length > 0 || (isWanted && !isTooMuch);
    if (keep) total += bytes;
    if (keep) return { id, keep, rules: [...own, ...saved] };
    return { id, keep, rules: isOld ? ["maxAgeDays"] : isWanted ? ["maxTotalGB"] : ["no rule keeps it"] };
  });
};
