// An agent's life with one command, killed at a named point. journal.test.ts runs it as a separate process.
import { appendFileSync } from "node:fs";
import { openFileJournal } from "../../agent-sim/agent/index.ts";

const [path = "", effects = "", point = ""] = process.argv.slice(2);
const die = (at: string): void => {
  if (at === point) process.kill(process.pid, "SIGKILL");
};

const journal = openFileJournal(path, Date.now);
die("before-begin");
if (journal.begin("cmd", true)) {
  die("after-begin");
  appendFileSync(effects, "x");
  die("after-work");
  journal.finish("cmd", { status: "succeeded" });
  die("after-finish");
}
