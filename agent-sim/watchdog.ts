// Kills this process when its event loop stands still, so that the service manager, Docker or the launcher starts it again. The watchdog of systemd needs a
// datagram socket, which Node does not have, and would help under systemd only.
import { url as inspector } from "node:inspector";
import { Worker } from "node:worker_threads";
import type { Time } from "./agent/index.ts";

const WATCH = { everyMs: 10_000, misses: 12 };

/** In a thread of its own. It counts its own turns and reads no clock, so a machine that slept has missed one turn at most. */
const WATCHER = `
const { workerData: { beats, everyMs, misses } } = require("node:worker_threads");
let [seen, missed] = [-1, 0];
setInterval(() => {
  const now = Atomics.load(beats, 0);
  [seen, missed] = [now, now === seen ? missed + 1 : 0];
  if (missed < misses) return;
  require("node:fs").writeSync(2, "nothing ran for " + Math.round(missed * everyMs / 1000) + " s, so the agent ends and is to be started again\\n");
  process.kill(process.pid, "SIGKILL");
}, everyMs);`;

/** Returns what ends the watch. */
export const watchEventLoop = (time: Time, { everyMs, misses } = WATCH): (() => Promise<unknown>) => {
  // Somebody who stops at a breakpoint wants it to stand still.
  if (inspector() !== undefined) return async () => undefined;
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const resourceLimits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2 };
  const worker = new Worker(WATCHER, { eval: true, workerData: { beats, everyMs, misses }, execArgv: [], resourceLimits });
  worker.on("error", (error) => void process.stderr.write(`nothing watches whether the agent stands still: ${error.message}\n`));
  worker.unref();
  let cancel = time.after(everyMs, function beat() {
    Atomics.add(beats, 0, 1);
    cancel = time.after(everyMs, beat);
  });
  return () => {
    cancel();
    return worker.terminate();
  };
};
