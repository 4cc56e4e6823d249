// The processor time of this process, and of those of its children that have ended, with their own; and what the command before it has taken.
import { readFileSync } from "node:fs";

/** What Linux counts in; the same on every platform that runs Node. */
const TICKS_PER_SECOND = 100;

/** Figures of a process, in seconds. */
interface Figures {
  /** The processor time of its ended children. */
  readonly ofChildren: number;
  /** Its start, on the system's clock. */
  readonly startedAt: number;
}
/** Null where the system does not tell. */
const figuresOf = (pid: number | "self"): Figures | null => {
  try {
    // The name stands in parentheses and may have spaces. After it come the fields from the third on; 16 and 17 are the children's, 22 is the start.
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    const secondsIn = (field: number): number => Number(fields[field - 3]) / TICKS_PER_SECOND;
    return { ofChildren: secondsIn(16) + secondsIn(17), startedAt: secondsIn(22) };
  } catch {
    return null;
  }
};

export const processorSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000 + (figuresOf("self")?.ofChildren ?? 0);
};

export interface Cost {
  readonly wall: number;
  readonly processor: number;
}
/** These run the tests last, in a shell of their own. */
const COMMANDS: readonly (string | undefined)[] = ["test", "test:release"];

/** What `npm test` has taken before it started this process: the build and the checks. */
export const costBefore = (): Cost => {
  const shell = COMMANDS.includes(process.env["npm_lifecycle_event"]) ? figuresOf(process.ppid) : null;
  const own = figuresOf("self");
  return shell === null || own === null ? { wall: 0, processor: 0 } : { wall: own.startedAt - shell.startedAt, processor: shell.ofChildren };
};
