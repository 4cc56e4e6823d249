// Follows the lines that a foreign program says on standard output, for as long as somebody reads them.
import { type LineOptions, linesOf } from "./lines.ts";
import { type ProgramOptions, startProgram } from "./program.ts";

export interface FollowOptions extends Omit<ProgramOptions, "stdio" | "outlives">, LineOptions {}

/** Starts the program with the first read. It ends with the reader, with a signal, or by itself; while nobody reads on, its full pipe holds it. */
export async function* followProgram({ maxBytes, secrets, ...options }: FollowOptions): AsyncGenerator<string, void> {
  const program = startProgram({ ...options, stdio: ["ignore", "pipe", "ignore"] });
  try {
    yield* linesOf(program.child.stdout, { ...(maxBytes === undefined ? {} : { maxBytes }), ...(secrets === undefined ? {} : { secrets }) });
  } finally {
    await program.end();
  }
}
