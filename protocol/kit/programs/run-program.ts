// Runs a foreign program to its end, within a bounded time, and keeps the end of what it says.
import { pause, type Timers } from "../timers.ts";
import { type ProgramEnd, type ProgramOptions, startProgram } from "./program.ts";
import { createTail } from "./tail.ts";

const MAX_OUTPUT_BYTES = 4_194_304;
const MAX_ERROR_BYTES = 65_536;

export interface RunOptions extends Omit<ProgramOptions, "stdio" | "outlives"> {
  /** From its start to its end. */
  readonly withinMs: number;
  /** The longest time without output; default: as long as it may run. */
  readonly idleMs?: number;
  /** The end of the output that is kept; default 4 MiB. */
  readonly maxBytes?: number;
  /** Open files that the program gets as descriptors 3, 4 and so on. */
  readonly inherits?: readonly number[];
}

/** `late`, `silent`: it was ended after its time, or after a time without output. `stopped`: a signal has ended it. */
export type RunOutcome = "ended" | "late" | "silent" | "stopped" | "not started";

export interface RunResult extends ProgramEnd {
  readonly outcome: RunOutcome;
  readonly output: string;
  readonly errors: string;
  /** The beginning of the output is gone. */
  readonly isCut: boolean;
}

/** Aborts when the time is over that `restart` begins anew. */
const createIdle = (time: Timers, idleMs: number | undefined, isOver: () => void) => {
  let cancel = (): void => undefined;
  return {
    restart: (): void => {
      cancel();
      if (idleMs !== undefined) cancel = time.after(idleMs, isOver);
    },
    stop: (): void => cancel(),
  };
};

/** Never rejects. Resolves at the latest some seconds after its time is over or a signal aborts, whatever the program does. */
export const runProgram = async ({ withinMs, idleMs, maxBytes = MAX_OUTPUT_BYTES, inherits = [], ...options }: RunOptions): Promise<RunResult> => {
  const { time, signals = [] } = options;
  const program = startProgram({ ...options, stdio: ["ignore", "pipe", "pipe", ...inherits] });
  const [output, errors] = [createTail(maxBytes), createTail(MAX_ERROR_BYTES)];
  let cause: RunOutcome | null = null;
  const endAs = (why: RunOutcome): void => {
    cause ??= why;
    void program.end();
  };
  const idle = createIdle(time, idleMs, () => endAs("silent"));
  idle.restart();
  for (const [stream, tail] of [
    [program.child.stdout, output],
    [program.child.stderr, errors],
  ] as const)
    stream?.on("data", (bytes: Buffer) => {
      idle.restart();
      tail.push(bytes);
    });
  const done = new AbortController();
  void pause(time, withinMs, done.signal).then(() => {
    if (!done.signal.aborted) endAs("late");
  });
  const ending = await program.ended;
  done.abort();
  idle.stop();
  // A descendant may hold the output open.
  await program.end();
  const ownEnd = ending.error === null ? "ended" : "not started";
  const outcome = cause ?? (signals.some(({ aborted }) => aborted) ? "stopped" : ownEnd);
  return { ...ending, outcome, output: output.text(), errors: errors.text(), isCut: output.isCut };
};
