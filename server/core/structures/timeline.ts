// The steps of a record as its row keeps them: bounded, because every record has a history and agents decide how often they report.
import type { TimelineStep } from "../../../protocol/index.ts";

/** A timeline with more steps keeps the first and the newest. */
const MAX_STEPS = 200;

export const addTimelineStep = (stored: unknown, step: TimelineStep): TimelineStep[] => {
  const steps = stored as readonly TimelineStep[]; // as: nothing else writes the column
  const [first, , ...newest] = steps;
  return steps.length < MAX_STEPS || first === undefined ? [...steps, step] : [first, ...newest, step];
};
