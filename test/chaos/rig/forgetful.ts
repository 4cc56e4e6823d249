// Broken parts of agents for controls: a journal that forgets, a clock that cannot be corrected.

import { createJournal, createMemoryJournal, type Journal, noop, type Random, systemTime, type Time } from "../../../agent-sim/agent/index.ts";

/** A journal to which every delivery looks new. */
export const forgetfulJournal = (): Journal => {
  let kept = createMemoryJournal(systemTime.wallMs);
  return {
    begin: (id, requiresAck) => {
      // Forget only this id; the other commands in flight stay.
      if (kept.find(id)) {
        const others = [...kept.entries()].filter(({ commandId }) => commandId !== id);
        kept = createJournal({ wallMs: systemTime.wallMs, write: noop });
        for (const { commandId, requiresAck: wants, result, status, settledAtMs } of others) {
          kept.begin(commandId, wants);
          if (result) kept.finish(commandId, { ...result, status });
          if (settledAtMs !== null) kept.settle(commandId);
        }
      }
      return kept.begin(id, requiresAck);
    },
    note: (id, status) => kept.note(id, status),
    finish: (id, result) => kept.finish(id, result),
    settle: (id) => kept.settle(id),
    find: (id) => kept.find(id),
    // It lists nothing, so the gateway delivers its commands again.
    unsettled: () => [],
    entries: () => kept.entries(),
    close: () => kept.close(),
  };
};

/** A wall clock that is off by a constant, which the gateway's answer can correct. */
export const shifted = (time: Time, byMs: number): Time => ({ ...time, wallMs: () => time.wallMs() + byMs });

/** A wall clock that jumps by up to this much at each reading, so no correction holds. */
export const drunken = (time: Time, uptoMs: number, random: Random): Time => ({
  ...time,
  wallMs: () => time.wallMs() + (random() < 0.5 ? -1 : 1) * uptoMs * (0.5 + random()),
});
