// Runs one command of the command line in a process of its own.
import { runCommandLine } from "./command-line.ts";
import { systemClock } from "./core/clock.ts";

// The reader may go away in the middle; what is open must still be closed.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

process.exitCode = await runCommandLine(process.argv.slice(2), { clock: systemClock, env: process.env, stdout: process.stdout, stderr: process.stderr });
