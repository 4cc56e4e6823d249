// An agent whose event loop stands still is ended, so that it can be started again; one that is merely busy is not.
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { systemTime as time } from "../../../agent-sim/agent/index.ts";
import { runProgram } from "../../../agent-sim/children/index.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** Runs the code with a watch that ends the process after six turns of 50 ms without a beat. */
const watched = (code: string) => {
  const start = `import { systemTime } from "./agent-sim/agent/index.ts"; import { watchEventLoop } from "./agent-sim/watchdog.ts";
const stop = watchEventLoop(systemTime, { everyMs: 50, misses: 6 }); const block = (ms) => { const end = performance.now() + ms; while (performance.now() < end); };
${code}`;
  return runProgram({
    command: process.execPath,
    words: ["--import", "tsx", "--input-type=module", "-e", start],
    cwd: ROOT,
    env: process.env,
    time,
    withinMs: 60_000,
  });
};

test("it is killed, and says why", async () => {
  const { signal, errors } = await watched("setTimeout(() => { for (;;); }, 100)");
  expect([signal, errors]).toEqual(["SIGKILL", "nothing ran for 0 s, so the agent ends and is to be started again\n"]);
});

test("with a loop that turns between long pieces of work it lives, and ends once the watch has ended", async () => {
  const { code, errors } = await watched(
    "for (let piece = 0; piece < 10; piece += 1) { block(100); await new Promise((resolve) => setTimeout(resolve, 60)); } await stop();",
  );
  expect([code, errors]).toEqual([0, ""]);
});

test("a watch that was ended kills nobody", async () => {
  const { code, errors } = await watched("await stop(); block(1_000)");
  expect([code, errors]).toEqual([0, ""]);
});
