// Frames of an agent are numbered 1, 2, 3, …: what is missing or comes twice within a connection is seen by that.
import type { Session } from "./session.ts";
import type { ChannelStats } from "./stats.ts";

const ZERO = 0x30;
const MAX_DIGITS = 15;

/** 0 for whatever is not written as 1, 2, 3, … */
const numberOf = (id: string): number => {
  if (id.length === 0 || id.length > MAX_DIGITS || id.charCodeAt(0) === ZERO) return 0;
  let number = 0;
  for (let index = 0; index < id.length; index += 1) {
    const digit = id.charCodeAt(index) - ZERO;
    if (digit < 0 || digit > 9) return 0;
    number = number * 10 + digit;
  }
  return number;
};

/** True when this number was here before. Ids that are no numbers tell nothing. */
export const isRepeat = (session: Session, id: string, stats: ChannelStats): boolean => {
  const number = numberOf(id);
  if (number === 0) return false;
  if (number <= session.lastFrame) {
    stats.frameRepeats += 1;
    return true;
  }
  stats.frameGaps += number - session.lastFrame - 1;
  session.lastFrame = number;
  return false;
};
