// The kit's only access to time, and waits that grow with the load of the machine: a busy machine must not make a right agent look wrong.
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { pause, systemTimers, type Time } from "../kit/timers.ts";

export const kitTime: Time = {
  ...systemTimers,
  wallMs: () => Date.now(),
  elapsedMs: () => performance.now(),
};

const SAMPLE_MS = 100;
const MOST_SAMPLES = 1_200;
/** How much of the past a sample keeps. */
const KEEP = 0.9;
const LOOK_MS = 10;

/** How many programs want each processor now; null where the system does not tell. */
const wantedShare = (): number | null => {
  try {
    const [, running] = /^\S+ \S+ \S+ (\d+)\//.exec(readFileSync("/proc/loadavg", "utf8")) ?? [];
    return running === undefined ? null : Number(running) / availableParallelism();
  } catch {
    return null;
  }
};

export interface Patience {
  /** Looks until there is something, and resolves to null when `withinMs`, stretched by the load, are over. */
  until<T>(look: () => T | null | undefined | false, withinMs: number): Promise<T | null>;
  /** Stretches with the load too, so that what must not happen gets its time to happen. */
  pass(ms: number): Promise<void>;
  /** 1 on an idle machine. */
  readonly load: number;
  /** By how much two arrivals since then may look closer than they were sent: this process was held up. */
  heldUpMs(sinceMs: number): number;
  stop(): void;
}

export const createPatience = (time: Time): Patience => {
  let load = 1;
  const heldUp: { readonly atMs: number; readonly ms: number }[] = [];
  let cancel = (): void => undefined;
  const sample = (dueMs: number): void => {
    const nowMs = time.elapsedMs();
    heldUp.push({ atMs: nowMs, ms: nowMs - dueMs });
    if (heldUp.length > MOST_SAMPLES) heldUp.shift();
    load = Math.max(1, KEEP * load + (1 - KEEP) * Math.max((nowMs - dueMs + SAMPLE_MS) / SAMPLE_MS, wantedShare() ?? 1));
    plan();
  };
  const plan = (): void => {
    const dueMs = time.elapsedMs() + SAMPLE_MS;
    cancel = time.after(SAMPLE_MS, () => sample(dueMs));
  };
  plan();
  const until: Patience["until"] = async (look, withinMs) => {
    for (let leftMs = withinMs, lastMs = time.elapsedMs(); ; ) {
      const found = look();
      if (found !== null && found !== undefined && found !== false) return found;
      if (leftMs <= 0) return null;
      await pause(time, LOOK_MS);
      const nowMs = time.elapsedMs();
      leftMs -= (nowMs - lastMs) / load;
      lastMs = nowMs;
    }
  };
  return {
    until,
    pass: async (ms) => void (await until(() => null, ms)),
    // What is shorter than a sample may go unseen.
    heldUpMs: (sinceMs) => SAMPLE_MS + Math.max(0, ...heldUp.filter(({ atMs }) => atMs >= sinceMs).map(({ ms }) => ms)),
    get load() {
      return load;
    },
    stop: () => cancel(),
  };
};
