// The present time as text, made once per millisecond: under load many frames carry the same.
// Asked with the monotonic time that the caller has at hand, so that most frames ask no clock at all.
import type { Clock } from "../../core/clock.ts";

export type Stamp = (nowMs: number) => string;

export const createStamp = (clock: Clock): Stamp => {
  let atMs = Number.NaN;
  let text = "";
  return (nowMs) => {
    if (nowMs !== atMs) {
      atMs = nowMs;
      text = clock.now().toISOString();
    }
    return text;
  };
};
