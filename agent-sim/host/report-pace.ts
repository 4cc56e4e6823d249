// When a report that the agent makes once a minute is due again: at its usual time, when the gateway says so, or soon after a report without an answer.
import { type HttpAnswer, hasSucceeded, jittered, NoAnswer, type Random, retryAfterMs } from "../agent/index.ts";

const EVERY_MS = 60_000;
/** After a report without an answer; twice as long after each further one, up to the usual interval. */
const AGAIN_MS = 5_000;
const JITTER_PCT = 10;
/** A gateway that comes back meets all agents at once. */
const AGAIN_JITTER_PCT = 50;

export const createReportPace = (random: Random) => {
  let unanswered = 0;
  const usualMs = (): number => jittered(random, EVERY_MS, JITTER_PCT);
  return {
    usualMs,
    /** Whether the last report got no answer. */
    isUnanswered: () => unanswered > 0,
    afterAnswer: (answer: HttpAnswer): number => {
      unanswered = 0;
      return hasSucceeded(answer) ? usualMs() : (retryAfterMs(answer) ?? usualMs());
    },
    /** Throws every other error. */
    afterError: (error: unknown): number => {
      if (!(error instanceof NoAnswer)) throw error;
      unanswered += 1;
      return jittered(random, Math.min(EVERY_MS, AGAIN_MS * 2 ** Math.min(unanswered - 1, 10)), AGAIN_JITTER_PCT);
    },
  };
};
