// Frames of an agent are numbered 1, 2, 3, …: what is missing or comes twice within a connection is seen by that.
import type { Session } from "./session.ts";
import type { ChannelStats } from "./stats.ts";

/** True when this number was here before. Ids that are no numbers tell nothing. */
export const isRepeat = (session: Session, id: string, stats: ChannelStats): boolean => {
  const number = Number(id);
  if (!Number.isSafeInteger(number) || number < 1 || String(number) !== id) return false;
  if (number <= session.lastFrame) {
    stats.frameRepeats += 1;
    return true;
  }
  stats.frameGaps += number - session.lastFrame - 1;
  session.lastFrame = number;
  return false;
};
