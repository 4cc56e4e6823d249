// The processor time of this process, and of those of its children that have ended, with their own.
import { readFileSync } from "node:fs";

/** What Linux counts in; the same on every platform that runs Node. */
const TICKS_PER_SECOND = 100;

/** Of ended children; 0 where the system does not tell. */
const ofChildren = (): number => {
  try {
    // The name stands in parentheses and may have spaces. After it come the fields from the third on; 16 and 17 are the children's.
    const fields = readFileSync("/proc/self/stat", "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
};

export const processorSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000 + ofChildren();
};
