// A queue of one future event for each of many agents, by the time at which it is due. Millions of entries cost two arrays and no objects.

export interface Calendar {
  /** Replaces nothing: an agent has at most one event. */
  add(agent: number, atMs: number): void;
  /** Calls `run` for every event, the earliest first, until none is left or `untilMs`. Those of one step come in any order. */
  drain(untilMs: number, run: (agent: number, nowMs: number) => void): void;
}

const NONE = -1;

/** An event later than the horizon never comes. */
export const createCalendar = (agents: number, { stepMs, horizonMs }: { readonly stepMs: number; readonly horizonMs: number }): Calendar => {
  const steps = Math.ceil(horizonMs / stepMs);
  const heads = new Int32Array(steps).fill(NONE);
  const next = new Int32Array(agents).fill(NONE);
  let current = -1;
  let waiting = 0;
  return {
    add: (agent, atMs) => {
      // Never in the step that runs, which would have no end.
      const step = Math.max(current + 1, Math.ceil(atMs / stepMs));
      if (step >= steps) return;
      next[agent] = heads[step] ?? NONE;
      heads[step] = agent;
      waiting += 1;
    },
    drain: (untilMs, run) => {
      for (current += 1; waiting > 0 && current < steps && current * stepMs <= untilMs; current += 1)
        for (let agent = heads[current] ?? NONE; agent !== NONE; agent = heads[current] ?? NONE) {
          heads[current] = next[agent] ?? NONE;
          waiting -= 1;
          run(agent, current * stepMs);
        }
    },
  };
};
