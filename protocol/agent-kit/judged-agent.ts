// Runs the agent that is judged, as a process in a group of its own.
import { type Program, startProgram } from "../kit/programs/program.ts";
import type { Time } from "../kit/timers.ts";

/** Output beyond this is dropped from its middle: the kit looks for codes near its beginning and shows its end. */
const MAX_OUTPUT = 262_144;

export interface JudgedAgent {
  /** Standard output and standard error together. */
  readonly output: string;
  /** Null while it runs. */
  readonly ended: { readonly code: number | null; readonly signal: string | null } | null;
  /** SIGKILL to the whole group. Resolves once it has ended. */
  kill(): Promise<void>;
}

export interface AgentCommand {
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly time: Time;
}

export const startAgent = ({ words, env, time }: AgentCommand): JudgedAgent => {
  const [command = "", ...rest] = words;
  const program: Program = startProgram({ command, words: rest, env, time });
  let output = "";
  let ended: JudgedAgent["ended"] = null;
  for (const stream of [program.child.stdout, program.child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (output.length > MAX_OUTPUT) output = `${output.slice(0, MAX_OUTPUT / 2)}\n…\n${output.slice(-MAX_OUTPUT / 4)}`;
    });
  const whenEnded = program.ended.then(({ code, signal, error }) => {
    if (error !== null) output += `\n${error.message}`;
    ended = { code, signal };
  });
  return {
    get output() {
      return output;
    },
    get ended() {
      return ended;
    },
    kill: async () => {
      const { pid } = program.child;
      if (pid !== undefined && ended === null)
        try {
          process.kill(-pid, "SIGKILL");
        } catch (error) {
          if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
        }
      await whenEnded;
    },
  };
};
