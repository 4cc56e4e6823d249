// The present time as text, made once per millisecond: under load many frames carry the same.
import type { Clock } from "../../core/clock.ts";

export type Stamp = () => string;

export const createStamp = (clock: Clock): Stamp => {
  let atMs = Number.NaN;
  let text = "";
  return () => {
    const now = clock.now();
    if (now.getTime() !== atMs) {
      atMs = now.getTime();
      text = now.toISOString();
    }
    return text;
  };
};
