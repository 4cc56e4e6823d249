// Starts every foreign program of gateway and agent, in a process group of its own. Ends it politely, then by force, and waits for none without an end.
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { pause, type Timers } from "../timers.ts";

/** From SIGTERM to SIGKILL. */
const PATIENCE_MS = 2_000;
/** A process in an uninterruptible call outlives SIGKILL for as long as that takes, and nobody waits for it. */
const KILLED_WITHIN_MS = 1_000;
/** A descendant may hold the output open after the program has ended. */
const LAST_WORDS_MS = 500;

export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** It could not be started, or outlives SIGKILL. */
  readonly error: (Error & { readonly code?: string }) | null;
}

export interface ProgramOptions {
  readonly command: string;
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Default: the user of this process. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  readonly time: Timers;
  /** Each of them ends the program. */
  readonly signals?: readonly AbortSignal[];
  /** Default: standard output and standard error are pipes. */
  readonly stdio?: StdioOptions;
  /** From SIGTERM to SIGKILL; default 2 s. */
  readonly patienceMs?: number;
  /** The end of this process leaves it running. */
  readonly outlives?: boolean;
  /** It stays in the process group of this process, where Ctrl-C of the terminal reaches it. */
  readonly sharesTerminal?: boolean;
}

export interface Program {
  readonly child: ChildProcess;
  /** Never rejects. Once `end` is called it resolves at the latest when the patience is over. */
  readonly ended: Promise<ProgramEnd>;
  /** Ends the program and closes its output, which others may hold open. */
  end(): Promise<ProgramEnd>;
}

const living = new Set<() => void>();
// However this process ends, short of SIGKILL, what works for it ends too.
process.once("exit", () => {
  for (const kill of living) kill();
});

/** Returns the function that signals it with its group. */
const signaller = ({ pid }: ChildProcess, isGroup: boolean) => {
  return (signal: NodeJS.Signals): void => {
    if (pid === undefined) return;
    try {
      process.kill(isGroup ? -pid : pid, signal);
    } catch (error) {
      // It has ended meanwhile, or runs as another user by now.
      if (!(error instanceof Error && "code" in error && (error.code === "ESRCH" || error.code === "EPERM"))) throw error;
    }
  };
};

export const startProgram = (options: ProgramOptions): Program => {
  const { command, words, env, cwd, user, time, signals = [], stdio = ["ignore", "pipe", "pipe"], patienceMs = PATIENCE_MS } = options;
  const isGroup = options.sharesTerminal !== true;
  const child = spawn(command, [...words], { env, stdio, detached: isGroup, ...user, ...(cwd === undefined ? {} : { cwd }) });
  const send = signaller(child, isGroup);
  const kill = (): void => send("SIGKILL");
  if (options.outlives !== true) living.add(kill);

  const over = new AbortController();
  let settle = (_how: Partial<ProgramEnd>): void => undefined;
  const ended = new Promise<ProgramEnd>((resolve) => {
    settle = (how) => {
      over.abort();
      living.delete(kill);
      resolve({ code: null, signal: null, error: null, ...how });
    };
  });
  let ending = false;
  const closeOutput = (): void => {
    for (const stream of [child.stdout, child.stderr]) stream?.destroy();
  };
  const force = async (): Promise<void> => {
    send("SIGTERM");
    await pause(time, patienceMs, over.signal);
    kill();
    await pause(time, KILLED_WITHIN_MS, over.signal);
    closeOutput();
    child.unref();
    settle({ error: new Error(`process ${child.pid} did not end after SIGKILL`) });
  };
  const end = (): Promise<ProgramEnd> => {
    if (!ending) {
      ending = true;
      if (over.signal.aborted) closeOutput();
      else void force();
    }
    return ended;
  };
  child.once("error", (error) => {
    if (child.pid === undefined) settle({ error });
  });
  child.once("exit", (code, signal) => {
    living.delete(kill);
    // What the program leaves behind gets no more time.
    if (ending) kill();
    void pause(time, LAST_WORDS_MS, over.signal).then(() => settle({ code, signal }));
    child.once("close", () => settle({ code, signal }));
  });
  const onAbort = (): void => void end();
  child.once("close", () => {
    for (const signal of signals) signal.removeEventListener("abort", onAbort);
  });
  for (const signal of signals) signal.addEventListener("abort", onAbort, { once: true });
  if (signals.some(({ aborted }) => aborted)) onAbort();
  return { child, ended, end };
};
