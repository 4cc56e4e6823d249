// Ends what an interrupted test run leaves behind. It outlives the run, which holds the other end of its standard input, and then ends every process that
// names the run in its command line, environment or folder, with their children. It also ends a run whose npm has gone. It needs /proc, so Linux.
// `node run-guard.mjs ROOTS MARK PID [NPM]`: where its folders stand, the run's mark and process, and npm's if npm started it.
import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";

const [, , roots = "", mark = "", run = "", npm = ""] = process.argv;
const LOOK_MS = 500;
/** Enough for a database or a container engine to stop in order. */
const ORDERLY_MS = 4_000;
const LONGEST_MS = 20_000;

// Ctrl-C reaches the whole group; this process ends last.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => undefined);

/** Empty for a process that has ended, or belongs to another user. */
const orNothing = (look) => {
  try {
    return look();
  } catch {
    return "";
  }
};
const read = (pid, name) => orNothing(() => readFileSync(`/proc/${pid}/${name}`, "latin1"));
/** Redis writes its title over its environment, so the folder that it works in counts too. */
const isMarked = (pid) => [read(pid, "cmdline"), read(pid, "environ"), orNothing(() => readlinkSync(`/proc/${pid}/cwd`))].some((text) => text.includes(mark));
/** After the name, which stands in parentheses, come the state and the parent. */
const stateOf = (pid) => {
  const [state, parent] = read(pid, "stat")
    .replace(/^.*\) /s, "")
    .split(" ");
  return { alive: state !== undefined && !["", "Z", "X"].includes(state), parent };
};

/** The processes of the run, the children of each included. */
const ours = () => {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => ({ pid, ...stateOf(pid) }))
    .filter(({ alive }) => alive);
  const found = new Set(all.filter(({ pid }) => isMarked(pid)).map(({ pid }) => pid));
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return [...found];
};
const send = (pid, signal) => {
  try {
    process.kill(Number(pid), signal);
  } catch {
    // It has ended meanwhile.
  }
};

/** True if there was none. */
const removeFolders = () => {
  const named = (root) => [...orNothing(() => readdirSync(root))].filter((name) => name.startsWith(mark)).map((name) => join(root, name));
  const folders = roots.split(":").flatMap(named);
  for (const folder of folders) orNothing(() => rmSync(folder, { recursive: true, force: true }));
  return folders.length === 0;
};

let isEnding = false;
const endAll = () => {
  if (isEnding) return;
  isEnding = true;
  const since = performance.now();
  const asked = new Set();
  const step = () => {
    const left = ours();
    const age = performance.now() - since;
    // A process that is at its end names nothing any more and may still write, so folders are looked at until there are none.
    if ((left.length === 0 && removeFolders()) || age > LONGEST_MS) process.exit(0);
    for (const pid of left) {
      if (age > ORDERLY_MS) send(pid, "SIGKILL");
      else if (!asked.has(pid)) send(pid, "SIGTERM");
      asked.add(pid);
    }
    setTimeout(step, 50);
  };
  step();
};

process.stdin.on("end", endAll).on("error", endAll).resume();
if (npm !== "") {
  // npm sends signals to its shell alone, and dies from SIGKILL without any.
  const shell = stateOf(run).parent;
  setInterval(() => {
    if (stateOf(run).parent === shell && stateOf(shell).parent === npm) return;
    send(run, "SIGKILL");
  }, LOOK_MS).unref();
}
