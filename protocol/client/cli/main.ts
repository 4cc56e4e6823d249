// The program `mooring`.
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { systemTimers } from "../../kit/timers.ts";
import { run } from "./run.ts";

/** Shows the question and nothing of what is typed. */
const ask = async (question: string): Promise<string> => {
  if (process.stdin.isTTY) process.stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: process.stdin.isTTY });
  try {
    return await lines.question("");
  } finally {
    lines.close();
    if (process.stdin.isTTY) process.stderr.write("\n");
  }
};

const interrupted = new AbortController();
process.once("SIGINT", () => interrupted.abort());
process.once("SIGTERM", () => interrupted.abort());
// The reader of a pipe has gone.
process.stdout.on("error", () => process.exit(0));

const time = { ...systemTimers, elapsedMs: () => performance.now() };
process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  time,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: interrupted.signal,
  ask,
});
