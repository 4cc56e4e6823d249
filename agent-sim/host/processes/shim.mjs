// Stands between the agent and one program, so that the program and its log outlive the agent: starts it, masks and bounds its log, notes how it ended.
// The agent starts it with the app's folder as working folder and sends the order as one JSON text on standard input; without a whole order it ends.
import { spawn } from "node:child_process";
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from "node:fs";

const LONGEST_LINE = 16_384;
const LAST_WORDS_MS = 500;

const orderFrom = () => {
  try {
    return JSON.parse(readFileSync(0, "utf8"));
  } catch {
    // The agent died before it could say what to run.
    process.exit(1);
  }
};
const { program, environment, hidden, logBytes, headline } = orderFrom();
// The agent signals the whole group; this process ends when the program has.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);

// The order names what to hide, the longest first: this file runs without the agent's own.
const masked = (line) => hidden.reduce((text, secret) => text.replaceAll(secret, "***"), line);
const longestSecret = hidden[0]?.length ?? 0;

const openLog = () => openSync("log", constants.O_CREAT | constants.O_APPEND | constants.O_WRONLY | constants.O_NOFOLLOW, 0o600);
let file = openLog();
let size = fstatSync(file).size;
let lost = 0;
const append = (text) => {
  const bytes = Buffer.from(text);
  // Two files of half the bound each.
  if (size > 0 && size + bytes.length > logBytes / 2) {
    closeSync(file);
    renameSync("log", "log.1");
    file = openLog();
    size = 0;
  }
  size += writeSync(file, bytes);
};
const CUT_MARK = " … (cut)";
/** Standard error has a tab after the time. */
const write = (line, separator = " ") => {
  const stamp = new Date().toISOString();
  try {
    if (lost > 0) append(`${stamp} (${lost} lines are lost: the disk was full)\n`);
    lost = 0;
    const text = masked(line);
    append(`${stamp}${separator}${text.length > LONGEST_LINE ? text.slice(0, LONGEST_LINE) + CUT_MARK : text}\n`);
  } catch {
    // A full disk must not stop the program.
    lost += 1;
  }
};

/** Feeds a stream's whole lines to the log. Of a line that is too long, the rest is dropped. */
const record = (stream, separator) => {
  let rest = "";
  let dropping = false;
  stream.setEncoding("utf8").on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!dropping) write(line.replace(/\r$/, ""), separator);
      dropping = false;
    }
    // A secret across the cut must be whole here, so that its first half is masked too.
    if (!dropping && rest.length > LONGEST_LINE + longestSecret) {
      write(rest, separator);
      dropping = true;
    }
    if (dropping) rest = "";
  });
  stream.on("end", () => {
    if (rest !== "" && !dropping) write(rest, separator);
  });
};

write(headline);
const child = spawn(process.execPath, [program], { env: environment, stdio: ["ignore", "pipe", "pipe"] });
let ended = null;
const finish = () => {
  if (ended === null) return;
  try {
    writeFileSync("exit.next", JSON.stringify(ended), { mode: 0o600 });
    renameSync("exit.next", "exit");
  } catch {
    // Without the file the agent knows only that it ended.
  }
  process.exit(0);
};
record(child.stdout);
record(child.stderr, "\t");
child.on("error", (error) => {
  write(`cannot start: ${error.message}`);
  ended ??= { code: 127, signal: null };
  finish();
});
child.on("exit", (code, signal) => {
  ended = { code, signal };
  // A child of the program may hold its output open.
  setTimeout(finish, LAST_WORDS_MS);
});
child.on("close", finish);
