// A machine on which somebody runs the install line: a home of its own, whose user is nobody special, and a PATH that a test can fill.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

export interface Ran {
  readonly code: number | null;
  /** What it said, to standard output and to standard error. */
  readonly said: string;
}

export interface Machine {
  readonly home: string;
  readonly data: string;
  /** Runs a line of the shell. */
  run(line: string, more?: { readonly path?: string; readonly env?: Readonly<Record<string, string>> }): Promise<Ran>;
  /** Puts a program before those of the system. */
  program(name: string, text: string): Promise<void>;
  /** The files of the home, links included. */
  files(): Promise<readonly string[]>;
  remove(): Promise<void>;
}

export const openMachine = async (): Promise<Machine> => {
  const folder = await mkdtemp(join(tmpdir(), "machine-"));
  const [home, programs] = [join(folder, "home"), join(folder, "programs")];
  await Promise.all([mkdir(home), mkdir(programs)]);
  const program: Machine["program"] = (name, text) => writeFile(join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  // As root the script would install for the whole machine, which is the one of the tests.
  await program("id", "case $1 in -u) echo 12345 ;; -un) echo tester ;; *) exit 1 ;; esac");
  await program("sudo", 'exec "$@"');
  return {
    home,
    data: join(home, ".local/share/mooring-agent"),
    program,
    run: async (line, { path = process.env["PATH"] ?? "", env = {} } = {}) => {
      const child = spawn("/bin/sh", ["-c", line], {
        cwd: home,
        env: { PATH: `${programs}:${path}`, HOME: home, TMPDIR: folder, ...env },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const parts: string[] = [];
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part: string) => parts.push(part));
      const [code] = (await once(child, "close")) as [number | null]; // as: its documented arguments
      return { code, said: parts.join("") };
    },
    files: async () => {
      const found = await readdir(home, { recursive: true, withFileTypes: true });
      return found.filter((entry) => !entry.isDirectory()).map((entry) => relative(home, join(entry.parentPath, entry.name)));
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
};
