// The figures of a simulated machine as a function of the time: a day's curve, noise on several scales, and a disk that slowly fills. Nothing is kept, so
// the same seed and the same moment always give the same figures.
import type { Time } from "../agent/index.ts";

export interface Habits {
  /** Percent at night. */
  readonly cpu: number;
  /** More percent when people work. */
  readonly busy: number;
  /** Percent. */
  readonly memory: number;
  /** Percent after it was last tidied up. */
  readonly disk: number;
  /** Degrees above a healthy machine. */
  readonly heat?: number;
  /** The time zone of the people who use it. */
  readonly utcOffsetHours: number;
}

export type MachineFigures = Readonly<Record<"cpu" | "memory" | "disk" | "temperature" | "uptimeSeconds", number>>;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** When logs are deleted and services restart. */
const TIDY_EVERY = 9 * DAY;
const DISK_GROWTH = 3;
const MEMORY_GROWTH = 5;
const REBOOT_EVERY = 47 * DAY;

/** From -1 to 1, the same for the same numbers. */
const scattered = (seed: number, at: number): number => {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(at | 0, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 2_147_483_648 - 1;
};

/** Goes smoothly through a random value at each multiple of the scale. */
const noise = (seed: number, wallMs: number, scaleMs: number): number => {
  const at = Math.floor(wallMs / scaleMs);
  const share = wallMs / scaleMs - at;
  const weight = share * share * (3 - 2 * share);
  return scattered(seed, at) * (1 - weight) + scattered(seed, at + 1) * weight;
};

/** 0 in the night, 1 in the early afternoon. */
const workload = (wallMs: number, utcOffsetHours: number): number => {
  const hour = (((wallMs / HOUR + utcOffsetHours) % 24) + 24) % 24;
  return Math.max(0, Math.sin(((hour - 6) / 15) * Math.PI)) ** 1.5 * Number(hour > 6 && hour < 21);
};

const within = (value: number, low: number, high: number): number => Math.round(Math.min(high, Math.max(low, value)) * 10) / 10;
/** From 0 to 1 over the period; machines begin theirs at different times. */
const shareOf = (seed: number, wallMs: number, periodMs: number): number => ((wallMs + (scattered(seed, 7) + 1) * periodMs) % periodMs) / periodMs;

export const createFigures =
  (seed: number, { cpu, busy, memory, disk, heat = 0, utcOffsetHours }: Habits, time: Pick<Time, "wallMs">): (() => MachineFigures) =>
  () => {
    const now = time.wallMs();
    const slow = cpu + busy * workload(now, utcOffsetHours) + 6 * noise(seed, now, 20 * MINUTE);
    const burst = Math.max(0, noise(seed + 1, now, 3 * MINUTE) - 0.55) * 60;
    const load = slow + burst + 4 * noise(seed + 2, now, 10_000);
    const sinceTidy = shareOf(seed, now, TIDY_EVERY);
    return {
      cpu: within(load, 0.5, 99.5),
      memory: within(memory + MEMORY_GROWTH * sinceTidy + 4 * noise(seed + 3, now, 7 * MINUTE) + 0.6 * noise(seed + 4, now, 15_000), 3, 98),
      disk: within(disk + DISK_GROWTH * sinceTidy + 0.3 * noise(seed + 5, now, 4 * MINUTE), 2, 99.4),
      temperature: within(37 + heat + slow * 0.22 + burst * 0.1 + 0.8 * noise(seed + 6, now, MINUTE), 20, 99),
      uptimeSeconds: Math.floor((shareOf(seed + 8, now, REBOOT_EVERY) * REBOOT_EVERY) / 1_000),
    };
  };
