// Follows the lines that a foreign program says on standard output, for as long as somebody reads them.
import { type ProgramOptions, startProgram } from "../../protocol/kit/programs/program.ts";
import { openBytePipe } from "./byte-pipe.ts";
import { type LineOptions, linesOf } from "./lines.ts";

export interface FollowOptions extends Omit<ProgramOptions, "stdio" | "outlives">, LineOptions {}

/** Starts the program with the first read. It ends with the reader, with a signal, or by itself; while nobody reads on, its full pipe holds it. */
export async function* followProgram({ maxBytes, secrets, ...options }: FollowOptions): AsyncGenerator<string, void> {
  // Without it, the program is read by Node's own pipe.
  const pipe = await openBytePipe().catch(() => null);
  const program = startProgram({ ...options, stdio: ["ignore", pipe?.writer ?? "pipe", "ignore"] });
  pipe?.writer.destroy();
  // A descendant may hold the output open.
  if (pipe !== null) void program.ended.then(() => options.signals?.some(({ aborted }) => aborted) === true && pipe.close());
  try {
    yield* linesOf(pipe?.bytes ?? program.child.stdout, { ...(maxBytes === undefined ? {} : { maxBytes }), ...(secrets === undefined ? {} : { secrets }) });
  } finally {
    pipe?.close();
    await program.end();
  }
}
