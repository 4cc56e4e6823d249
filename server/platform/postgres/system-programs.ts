// Runs the small programs of the operating system that the embedded database needs. They answer within moments or count as failed.
import { SYSTEM_PATH } from "../../../protocol/kit/programs/file-lock.ts";
import { type RunResult, runProgram } from "../../../protocol/kit/programs/run-program.ts";
import { systemTimers } from "../../../protocol/kit/timers.ts";

/** Programs inherit none of the gateway's environment, such as its master key. */
export const PROGRAM_ENVIRONMENT = { PATH: SYSTEM_PATH, LC_ALL: "C", TZ: "UTC" };

const WITHIN_MS = 10_000;
const MAX_BYTES = 65_536;
const MAX_COMPLAINT = 2_000;

/** Why a program failed, in its own words if it has any. */
export const complaintOf = ({ outcome, code, signal, error, output, errors }: RunResult): string => {
  const said = `${output}\n${errors}`.trim().slice(-MAX_COMPLAINT);
  const how = { ended: `it ended with ${signal ?? code}`, late: "it took too long", silent: "it said nothing for too long", stopped: "it was stopped" };
  const why = outcome === "not started" ? (error?.message ?? "it did not start") : how[outcome];
  return said === "" ? why : `${why}: ${said}`;
};

/** Returns what the program says. Rejects if it fails or does not end in time. */
export const runSystemProgram = async (command: string, words: readonly string[]): Promise<string> => {
  const result = await runProgram({ command, words, env: PROGRAM_ENVIRONMENT, time: systemTimers, withinMs: WITHIN_MS, maxBytes: MAX_BYTES });
  if (result.outcome !== "ended" || result.code !== 0) throw new Error(`${command} failed: ${complaintOf(result)}`);
  return result.output;
};
