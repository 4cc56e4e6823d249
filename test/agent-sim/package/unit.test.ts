// The unit of an installed agent, as the install script and the Debian package fill it in.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { packageRoot } from "../../../agent-sim/agent/own-files.ts";

const run = promisify(execFile);
/** Of ten. The gateway's own unit and those of Debian's daemons lie between 2 and 9. */
const MOST_EXPOSURE = 3;

let folder: string;
let file: string;
let unit: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mooring-unit-"));
  file = join(folder, "mooring-agent.service");
  const text = await readFile(join(packageRoot(import.meta.dirname), "agent-sim/package/mooring-agent.service"), "utf8");
  const values: Readonly<Record<string, string>> = {
    PREFIX: "/opt/mooring-agent",
    CONFIG: "/etc/mooring-agent",
    DATA: "/var/lib/mooring-agent",
    OWNER: "daemon",
    URL: "https://gw.example",
  };
  unit = text.replace(/@([A-Z]+)@/g, (_placeholder, name: string) => values[name] ?? "unknown");
  // The program is not installed on the machine of the tests.
  await writeFile(file, unit.replace(/^ExecStart=\S+/m, "ExecStart=/bin/true"));
});
afterAll(() => rm(folder, { recursive: true }));

describe.skipIf(process.platform !== "linux")("the agent's unit", () => {
  test("is one that systemd takes", async () => {
    expect(unit).not.toMatch(/@[A-Z]+@|unknown/);
    expect(await run("systemd-analyze", ["verify", file])).toEqual({ stdout: "", stderr: "" });
  });

  test("confines the agent", async () => {
    const { stdout } = await run("systemd-analyze", ["security", "--offline=true", "--no-pager", `--threshold=${MOST_EXPOSURE * 10}`, file]);
    expect(Number(/exposure level for \S+ ([\d.]+)/.exec(stdout)?.[1])).toBeLessThanOrEqual(MOST_EXPOSURE);
  });

  test("ends the agent and leaves its apps, and starts it again unless a person has to act", () => {
    for (const line of ["KillMode=process", "Delegate=yes", "Restart=always", "RestartPreventExitStatus=2"]) expect(unit).toContain(`\n${line}\n`);
  });
});
