// The compose host against a real Docker Engine: what it runs, restarts, replaces, restores and removes are containers, networks and volumes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createComposeHost } from "../../../agent-sim/host/compose.ts";
import type { Host } from "../../../agent-sim/host/host.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { newAppId } from "../../agent-sim/host/desired.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type DockerEngine, startDockerEngine } from "../../kit/docker/engine.ts";
import { freePort } from "../../kit/net/free-port.ts";

const IMAGE = "mooring-test/web:1.0.0";
const SECRET = "correct horse battery staple";
/** Time for a container to come up on a busy machine. */
const SOON_MS = 40_000;
// Each wait within a test has that bound, and one test waits for several starts.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 });

let engine: DockerEngine;
let folder: string;
let host: Host;
let app: DesiredApp;

beforeAll(async () => {
  engine = await startDockerEngine();
  await engine.makeImage(IMAGE);
}, 60_000);
afterAll(() => engine.close(), 60_000);

const open = (): Host => createComposeHost({ folder, time, supervision: { lookMs: 200, backoffMs: 100 }, secretsOf: async () => ({ SECRET }) });
const SCRIPT =
  'mkdir -p /www; echo "$$TEXT" > /www/index.html; echo ok > /www/health; echo "started with $$TEXT and $$KEY"; trap \'exit 0\' TERM; httpd -f -p 80 -h /www & wait';
const variable = (name: string): string => `$\{${name}}`;
const COMPOSE = JSON.stringify({
  services: {
    web: {
      image: IMAGE,
      restart: "unless-stopped",
      command: ["sh", "-c", SCRIPT],
      environment: { TEXT: variable("TEXT"), KEY: variable("KEY") },
      ports: [`${variable("HTTP_PORT")}:80`],
      volumes: ["files:/files"],
      healthcheck: { test: ["CMD", "cat", "/www/health"], interval: "1s", timeout: "5s", retries: 20 },
    },
  },
  volumes: { files: {} },
});

beforeEach(async () => {
  for (const [name, value] of Object.entries(engine.environment)) vi.stubEnv(name, value);
  folder = mkdtempSync(join(tmpdir(), "docker-engine-"));
  host = open();
  app = {
    appId: newAppId(),
    deploymentId: null,
    name: "Web",
    template: "web",
    templateVersion: "1.0.0",
    revision: 1,
    state: "running",
    keepVolumes: false,
    config: { port: await freePort(), text: "it's $HOME, a\\b # c\\" },
    secretsVersion: 1,
    spec: {
      kind: "compose",
      compose: COMPOSE,
      environment: { HTTP_PORT: { config: "port" }, TEXT: { config: "text" }, KEY: { secret: "SECRET" } },
      ports: [{ name: "http", protocol: "tcp", config: "port", target: 80 }],
      volumes: [{ name: "files" }],
      health: { http: { port: "http", path: "/health" }, intervalSeconds: 1, timeoutSeconds: 2, retries: 2, startSeconds: 30 },
      stopSeconds: 1,
    },
  };
});
afterEach(async () => {
  await host.close();
  const containers = (await engine.docker("ps", "--all", "--quiet")).split("\n").filter((id) => id !== "");
  if (containers.length > 0) await engine.docker("rm", "--force", "--volumes", ...containers);
  await engine.docker("network", "prune", "--force");
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const project = (): string => app.appId.toLowerCase();
const page = async (path = "/"): Promise<string> => (await fetch(`http://127.0.0.1:${app.config["port"]}${path}`)).text();
const container = async (): Promise<string> => (await engine.docker("ps", "--quiet", "--filter", `label=com.docker.compose.project=${project()}`)).trim();
const inspect = async (what: string): Promise<string> => (await engine.docker("inspect", "--format", `{{${what}}}`, await container())).trim();
const next = (revision: number, differences: Partial<DesiredApp> = {}): DesiredApp => ({ ...app, ...differences, revision });
const withText = (revision: number, text: string): DesiredApp => next(revision, { config: { ...app.config, text } });
const withCompose = (revision: number, change: (text: string) => string): DesiredApp =>
  next(revision, { spec: { ...app.spec, compose: change(COMPOSE) } as DesiredApp["spec"] }); // as: it is one of compose

test("a project comes up with its variables as they are, and answers on its port", async () => {
  expect(await host.apply(app)).toMatchObject({ state: "running", health: "healthy", revision: 1, failure: null });
  expect(await page()).toBe(`${app.config["text"]}\n`);
  expect(await engine.docker("volume", "ls", "--quiet")).toContain(`${project()}_files`);
});
test("an image that cannot be pulled is a failure of fetching that says why, and leaves no container", async () => {
  const failure = { stage: "fetching", reason: "COMPOSE_FAILED", message: expect.stringContaining("connection refused") };
  await expect(host.apply(withCompose(1, (text) => text.replace(IMAGE, "127.0.0.1:1/absent:1.0.0")))).rejects.toMatchObject(failure);
  expect(host.report()).toMatchObject([{ state: "failed", failure: { stage: "fetching", revision: 1 } }]);
  expect(await engine.docker("ps", "--all", "--quiet")).toBe("");
});
test("a container whose process is killed runs again", async () => {
  await host.apply(app);
  process.kill(Number(await inspect(".State.Pid")), "SIGKILL");
  await eventually(async () => expect(Number(await inspect(".RestartCount"))).toBe(1), SOON_MS);
  await eventually(async () => expect(await page("/health")).toBe("ok\n"), SOON_MS);
  await eventually(() => expect(host.report()).toMatchObject([{ state: "running", health: "healthy" }]), SOON_MS);
});
test("a container that somebody ends is started again by the agent, which counts it", async () => {
  await host.apply(app);
  await engine.docker("kill", await container());
  await eventually(() => expect(host.report()).toMatchObject([{ state: "running", health: "healthy", restarts: 1 }]), SOON_MS);
  expect(await page("/health")).toBe("ok\n");
});
test("an update replaces the container and keeps the volume, and the agent that comes back adopts it", async () => {
  await host.apply(app);
  await engine.docker("exec", await container(), "sh", "-c", "echo kept > /files/note");
  expect(await host.apply(withText(2, "second"))).toMatchObject({ state: "running", revision: 2 });
  expect(await page()).toBe("second\n");
  expect(await engine.docker("exec", await container(), "cat", "/files/note")).toBe("kept\n");
  const before = await container();
  await host.close();
  host = open();
  expect(await host.apply(withText(2, "second"))).toMatchObject({ state: "running", revision: 2 });
  expect(await container()).toBe(before);
});
test("an update that does not get healthy brings the former revision back", async () => {
  await host.apply(app);
  const broken = withCompose(2, (text) => text.replace('/www/health"],"interval', '/absent"],"interval').replace('"retries":20', '"retries":1'));
  await expect(host.apply(broken)).rejects.toMatchObject({ stage: "starting", reason: "COMPOSE_FAILED" });
  expect(host.report()).toMatchObject([{ state: "running", revision: 1, failure: { revision: 2, message: expect.stringContaining("unhealthy") } }]);
  expect(await page()).toBe(`${app.config["text"]}\n`);
});
test("a port that another program has is a failure before anything is stopped", async () => {
  await host.apply(app);
  const other = await engine.docker("run", "--detach", "--network", `${project()}_default`, "--publish", "0:80", IMAGE, "httpd", "-f", "-p", "80");
  const taken = Number((await engine.docker("port", other.trim(), "80")).split("\n")[0]?.split(":").at(-1));
  await expect(host.apply(next(2, { config: { ...app.config, port: taken } }))).rejects.toMatchObject({ reason: "PORT_TAKEN" });
  expect(await page("/health")).toBe("ok\n");
  expect(await host.apply(next(3))).toMatchObject({ state: "running", revision: 3 });
});
test("a removed app leaves no container, no network and no volume, unless its volumes are kept", async () => {
  await host.apply(app);
  await host.apply(next(1, { state: "removed", keepVolumes: true }));
  expect(await engine.docker("volume", "ls", "--quiet")).toContain(`${project()}_files`);
  await host.apply(next(2));
  await host.apply(next(2, { state: "removed" }));
  for (const what of ["volume", "network"]) expect(await engine.docker(what, "ls", "--format", "{{.Name}}")).not.toContain(project());
  expect(await engine.docker("ps", "--all", "--quiet")).toBe("");
  expect(host.report()).toEqual([]);
});
test("a stopped app has no container and starts again with its data", async () => {
  await host.apply(app);
  await engine.docker("exec", await container(), "sh", "-c", "echo kept > /files/note");
  expect(await host.apply(next(1, { state: "stopped" }))).toMatchObject({ state: "stopped" });
  expect(await engine.docker("ps", "--all", "--quiet")).toBe("");
  expect(await host.apply(app)).toMatchObject({ state: "running" });
  expect(await engine.docker("exec", await container(), "cat", "/files/note")).toBe("kept\n");
});
test("the log is what the app has said, with its time, and a viewer keeps it over a kill, an update and a restart", async () => {
  await host.apply(app);
  const said = (text: string) => expect.stringMatching(new RegExp(`^\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z ${text}$`));
  expect(await host.tail(app.appId, 10)).toEqual([expect.stringMatching(/^\S+Z started with it's \$HOME, a\\b # c\\ and \*\*\*$/)]);
  const watching = new AbortController();
  const lines: string[] = [];
  const watched = (async () => {
    for await (const line of host.follow(app.appId, watching.signal)) lines.push(line);
  })();
  const say = async (text: string): Promise<void> => void (await engine.docker("exec", await container(), "sh", "-c", `echo ${text} > /proc/1/fd/1`));
  await eventually(async () => {
    await say("listening");
    expect(lines.length).toBeGreaterThan(0);
  }, SOON_MS);
  process.kill(Number(await inspect(".State.Pid")), "SIGKILL");
  await eventually(() => expect(lines).toContainEqual(expect.stringContaining("started with it's")), SOON_MS);
  await host.apply(withText(2, "second"));
  await eventually(() => expect(lines.filter((line) => line.includes("started with second"))).toHaveLength(1), SOON_MS);
  await host.restart(withText(2, "second"));
  await eventually(() => expect(lines.filter((line) => line.includes("started with second"))).toHaveLength(2), SOON_MS);
  for (const line of lines) expect(line).toEqual(said("(listening|started with .* and \\*\\*\\*)"));
  expect(new Set(lines).size).toBe(lines.length);
  watching.abort();
  await watched;
});
test("the report has the CPU and the memory of the containers, and none once the app is stopped", async () => {
  await host.apply(app);
  await engine.docker("exec", "--detach", await container(), "sh", "-c", "yes > /dev/null");
  await eventually(() => {
    const [report] = host.report();
    expect(report?.cpuPercent).toBeGreaterThan(5);
    expect(report?.memoryBytes).toBeGreaterThan(100_000);
  }, SOON_MS);
  await host.apply(next(1, { state: "stopped" }));
  expect(host.report()).toMatchObject([{ state: "stopped", cpuPercent: null, memoryBytes: null }]);
});
