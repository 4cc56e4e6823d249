// Tells a process from a later one with the same pid.
import { readFile } from "node:fs/promises";
import { runSystemProgram } from "./system-programs.ts";

/** "pid@start" of a running process; undefined when it has ended or is a zombie. */
export const processIdentity = async (pid: number): Promise<string | undefined> => {
  if (process.platform === "linux") {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
    // The name in the second field may contain spaces and brackets, so count fields from its end: state first, start time twentieth.
    const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
    const state = fields?.[0];
    return fields === undefined || state === "Z" || state === "X" ? undefined : `${pid}@${fields[19]}`;
  }
  const started = await ps(pid, "lstart=");
  return started === undefined ? undefined : `${pid}@${started}`;
};

/** Whether process `pid` runs and is the PostgreSQL server of this cluster, not another process with a reused pid. */
export const isPostmasterOf = async (pid: number, clusterDir: string): Promise<boolean> => {
  if ((await processIdentity(pid)) === undefined) return false;
  // The server keeps its original command line; its children rename themselves.
  if (process.platform !== "linux") return (await ps(pid, "command="))?.includes(`-D ${clusterDir} `) ?? false;
  const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
  return words[words.indexOf("-D") + 1] === clusterDir;
};

const ps = async (pid: number, column: string): Promise<string | undefined> => {
  const said = await runSystemProgram("ps", ["-o", column, "-p", String(pid)]).catch(() => "");
  return said.trim() || undefined;
};
