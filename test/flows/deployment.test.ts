// The files of docs/deploy/ for service managers and containers, checked as far as possible without either: names, syntax, settings, files.
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { readConfig } from "../../server/config.ts";
import { copiesOf, stagesOf } from "./dockerfile.ts";
import { ROOT, runToEnd } from "./processes.ts";

const read = (name: string): Promise<string> => readFile(join(ROOT, "docs/deploy", name), "utf8");
const MASTER_KEY = Buffer.alloc(32, 3).toString("base64");
const INTERNAL_TOKEN = "a token that somebody chose";

describe("systemd unit", () => {
  test.skipIf(process.platform !== "linux")("systemd-analyze accepts the unit", async () => {
    const dir = await mkdtemp(join(tmpdir(), "mooring-unit-"));
    try {
      const file = join(dir, "mooring.service");
      // Node is installed elsewhere on the machine that runs the tests.
      await writeFile(file, (await read("mooring.service")).replace("/usr/bin/node", process.execPath));
      expect(await runToEnd(["systemd-analyze", "verify", file], { env: {} })).toEqual({ code: 0, stdout: "", stderr: "" });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });

  test("the unit starts the built gateway and gives a stop the time that a large fleet needs", async () => {
    const unit = await read("mooring.service");
    const [, script = ""] = /^ExecStart=.* (dist\/\S+)/m.exec(unit) ?? [];
    expect(existsSync(join(ROOT, script))).toBe(true);
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThanOrEqual(5 + 120 + 34);
  });

  test("production accepts the unit's settings only once their placeholders are filled in", async () => {
    const lines = (await read("mooring.env")).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    const env = { ...Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)])), NODE_ENV: "production" };
    expect(() => readConfig(env)).toThrow(/2 problem\(s\):\n {2}INTERNAL_TOKEN.*\n {2}MASTER_KEY/);
    expect(readConfig({ ...env, MASTER_KEY, INTERNAL_TOKEN })).toMatchObject({ PUBLIC_URL: "https://mooring.example.com" });
  });
});

describe("Dockerfile", () => {
  test("the Dockerfile copies only files of the repository, and its ignore file lets them through", async () => {
    const sources = stagesOf(await read("Dockerfile")).flatMap((stage) => copiesOf(stage).flatMap(({ from, sources: own }) => (from === null ? own : [])));
    expect(sources.length).toBeGreaterThan(5);
    const { stdout } = await runToEnd(["git", "ls-files", "--", ...sources], { env: {} });
    const tracked = stdout.split("\n");
    const passed = (await read("Dockerfile.dockerignore")).split("\n");
    for (const source of sources) {
      expect([source, tracked.some((file) => file === source || file.startsWith(`${source}/`))]).toEqual([source, true]);
      expect(passed).toContain(`!${source}`);
    }
  });

  test("the Dockerfile runs existing scripts on a supported Node", async () => {
    const stages = stagesOf(await read("Dockerfile"));
    const { scripts } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> };
    const commands = stages.flatMap(({ steps }) => steps.filter(({ word }) => word === "RUN").map(({ rest }) => rest));
    for (const name of commands.flatMap((command) => /^npm run (\S+)/.exec(command)?.[1] ?? [])) expect(Object.keys(scripts)).toContain(name);
    for (const { steps } of stages) expect(steps[0]).toMatchObject({ word: "FROM", rest: expect.stringMatching(/^node:(?:22-\w+|24-trixie)-slim/) });
  });
});

describe("compose file", () => {
  interface Compose {
    readonly services: Record<
      string,
      { readonly build?: { readonly context: string; readonly dockerfile: string }; readonly environment?: Record<string, string> }
    >;
    readonly volumes: Record<string, unknown>;
  }

  test("the compose file builds from this repository and documents every variable that it needs", async () => {
    const text = await read("compose.yaml");
    const { services } = parse(text) as Compose;
    const { context = "", dockerfile = "" } = services["mooring"]?.build ?? {};
    expect(existsSync(join(ROOT, "docs/deploy", context, dockerfile))).toBe(true);
    const head = text.split("\n").filter((line) => line.startsWith("#"));
    for (const [, name = ""] of text.matchAll(/\$\{(\w+)/g)) expect([name, head.some((line) => line.includes(name))]).toEqual([name, true]);
  });

  test("production accepts the settings of the compose file", async () => {
    const { services } = parse(await read("compose.yaml")) as Compose;
    const given: Record<string, string> = { MASTER_KEY, INTERNAL_TOKEN, POSTGRES_PASSWORD: "secret" };
    const filled = Object.entries(services["mooring"]?.environment ?? {}).map(([name, value]) => [
      name,
      value.replace(/\$\{(\w+):\?\}/g, (_, key) => given[key] ?? ""),
    ]);
    const image =
      stagesOf(await read("Dockerfile"))
        .at(-1)
        ?.steps.find(({ word }) => word === "ENV")?.rest ?? "";
    const env = { ...Object.fromEntries(image.split(" ").map((pair) => pair.split("=") as [string, string])), ...Object.fromEntries(filled) };
    expect(readConfig(env)).toMatchObject({ NODE_ENV: "production", HOST: "0.0.0.0", INTERNAL_HOST: "0.0.0.0", DATA_DIR: "/data" });
  });
});

test("docs/deployment.md explains every file of docs/deploy and names only existing files", async () => {
  const text = await readFile(join(ROOT, "docs/deployment.md"), "utf8");
  const named = [...text.matchAll(/\]\(((?!https?:)[^)#]+)\)/g)].map(([, path = ""]) => path);
  const { stdout } = await runToEnd(["git", "ls-files", "docs/deploy"], { env: {} });
  for (const file of stdout.trim().split("\n")) if (!file.endsWith(".dockerignore")) expect(named).toContain(file.replace("docs/", ""));
  for (const path of named) expect([path, existsSync(join(ROOT, "docs", path))]).toEqual([path, true]);
});
