// Frames of an agent are numbered 1, 2, 3, …: what is missing or comes twice within a connection is seen by that.
import type { Session } from "./session.ts";
import type { ChannelStats } from "./stats.ts";

const NUMBER = /^[1-9]\d{0,14}$/;

/** 0 for whatever is not written as 1, 2, 3, … */
export const numberOf = (id: string): number => (NUMBER.test(id) ? Number(id) : 0);

/** True when this number was here before. 0 tells nothing. */
export const isRepeat = (session: Session, number: number, stats: ChannelStats): boolean => {
  if (number === 0) return false;
  if (number <= session.lastFrame) {
    stats.frameRepeats += 1;
    return true;
  }
  stats.frameGaps += number - session.lastFrame - 1;
  session.lastFrame = number;
  return false;
};
