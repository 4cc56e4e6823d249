// What a running agent has to itself. Two identities with one folder of data would both run its apps, so an agent locks both.
import { lockState, pause, StateInUse, systemTime as time } from "./agent/index.ts";

const LOCK_WITHIN_MS = 2_000;

/** An agent that has just been killed may take a moment to end. */
const lockSoon = async (path: string): Promise<() => void> => {
  const untilMs = time.elapsedMs() + LOCK_WITHIN_MS;
  for (;;) {
    try {
      return await lockState(path, time);
    } catch (error) {
      if (!(error instanceof StateInUse) || time.elapsedMs() > untilMs) throw error;
      await pause(time, 100);
    }
  }
};

/** Returns what unlocks them all. */
export const lockAll = async (paths: readonly string[]): Promise<() => void> => {
  const held: (() => void)[] = [];
  const unlock = (): void => {
    for (const each of held) each();
  };
  try {
    for (const path of paths) held.push(await lockSoon(path));
    return unlock;
  } catch (error) {
    unlock();
    throw error;
  }
};
