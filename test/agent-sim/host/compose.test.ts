// The compose host against a recorded double of `docker`: a script that records its command lines and plays answers.
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createComposeHost } from "../../../agent-sim/host/compose.ts";
import type { Host } from "../../../agent-sim/host/host.ts";
import { COMPOSE_REFUSED, checkWrittenProject } from "../../../protocol/kit/compose-project.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { ESCAPES, resolved, written } from "../../compose/escapes.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { desiredApp } from "./desired.ts";

interface Call {
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly variables: string | null;
}

let folder: string;
let host: Host;
let app: DesiredApp;
const SECRET = "correct horse battery staple";
const SERVICE = "services:\n  web:\n    image: nginx:1.29\n    restart: unless-stopped\n";
const COMPOSE = `# a comment\n${SERVICE}    environment:\n      MODE: "$\{MODE}"\n`;

/** Runs until `down`; answers as docker compose 2 does. */
const DOUBLE = `#!${process.execPath}
const fs = require("node:fs");
const [state, calls, resolved] = [${JSON.stringify("STATE")}, ${JSON.stringify("CALLS")}, ${JSON.stringify("RESOLVED")}];
const given = process.argv.slice(2);
const verb = given[given.indexOf("--project-directory") + 2];
const variables = given[given.indexOf("--env-file") + 1];
const text = (path) => fs.existsSync(path) ? fs.readFileSync(path, "utf8") : null;
if (given[0] === "inspect") { process.stdout.write(given.slice(3).map((id) => "2026-01-0" + id.slice(1) + "T00:00:00.123456789Z\\n").join("")); process.exit(0); }
if (given[0] === "stats") { process.stdout.write(text(calls + ".stats") ?? ""); process.exit(0); }
fs.appendFileSync(calls, JSON.stringify({ arguments: given, environment: process.env, variables: text(variables) }) + "\\n");
if (verb === "up") {
  if (/bad/.test(text(given[given.indexOf("--file") + 1]))) { process.stderr.write("container web exited (1) with the secret " + process.env.SECRET + "\\n"); process.exit(1); }
  fs.writeFileSync(state, "running");
}
if (verb === "pull" && process.env.FULL) { process.stderr.write("write /x: no space left on device\\n"); process.exit(1); }
if (verb === "config") process.stdout.write(text(resolved) ?? '{"services":{"web":{"image":"nginx:1.29","restart":"unless-stopped"}}}');
if (verb === "down") fs.rmSync(state, { force: true });
if (verb === "ps" && text(state)) process.stdout.write(["c2", "c3", "c1"].map((ID) => JSON.stringify({ ID, Name: "web-1", State: "running", Health: "healthy" }) + "\\n").join(""));
if (verb === "logs") process.stdout.write("\\u001b[2K2026-01-02T00:00:01Z the secret is \\u001b[31m${SECRET.slice(0, 9)}\\u001b[0m${SECRET.slice(9)}\\n2026-01-02T00:00:00Z started\\nweb-1 exited with code 0\\n");
`;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "compose-host-"));
  const docker = join(folder, "docker.cjs");
  writeFileSync(docker, DOUBLE.replace("STATE", join(folder, "state")).replace("CALLS", join(folder, "calls")).replace("RESOLVED", join(folder, "resolved")));
  chmodSync(docker, 0o700);
  host = createComposeHost({ folder, time, docker, secretsOf: async () => ({ SECRET, UNDECLARED: "not for you" }) });
  const { spec, ...rest } = desiredApp(await freePort());
  const { program: _program, ...common } = spec as Extract<DesiredApp["spec"], { kind: "process" }>; // as: desiredApp makes no other
  // The double serves no page.
  const { http: _http, ...health } = common.health;
  app = { ...rest, config: { ...rest.config, mode: "it's $HOME" }, spec: { ...common, health, kind: "compose", compose: COMPOSE } };
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await host.close();
  rmSync(folder, { recursive: true });
});

const calls = (): readonly Call[] =>
  readFileSync(join(folder, "calls"), "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
const verbs = (): readonly string[] => calls().map(({ arguments: given }) => given[given.indexOf("--project-directory") + 2] ?? "");
const call = (verb: string): Call => {
  const found = calls()[verbs().indexOf(verb)];
  if (found === undefined) throw new Error(`no ${verb} in ${verbs().join(", ")}`);
  return found;
};
const at = (...names: readonly string[]): string => join(folder, "apps", app.appId, ...names);
const next = (compose: string): DesiredApp => ({ ...app, revision: app.revision + 1, spec: { ...app.spec, compose } as DesiredApp["spec"] }); // as: it is one of compose

test("tells when the last of its containers was started, as the engine says", async () => {
  await host.apply(app);
  await vi.waitFor(() => expect(host.report()[0]).toMatchObject({ startedAt: "2026-01-03T00:00:00.123Z" }), 20_000);
  expect(await host.apply({ ...app, state: "stopped" })).not.toHaveProperty("startedAt");
});
test("brings a project up under the app's id, from its own folder, and waits until it is healthy", async () => {
  expect(await host.apply(app)).toMatchObject({ state: "running", health: "healthy", revision: 1 });
  const files = ["--file", at("compose.yaml"), "--env-file", at("variables.env"), "--project-directory", at()];
  const project = ["compose", "--project-name", app.appId.toLowerCase(), ...files];
  expect(call("pull").arguments).toEqual([...project, "pull", "--quiet", "--policy", "missing"]);
  expect(call("up").arguments).toEqual([...project, "up", "--detach", "--remove-orphans", "--wait", "--wait-timeout", "10"]);
  expect(checkWrittenProject(readFileSync(at("compose.yaml"), "utf8"), ["MODE"]).project).toEqual(checkWrittenProject(COMPOSE, ["MODE"]).project);
});
test("an update whose page does not answer has failed its check, although its containers run, and the one before is back", async () => {
  await host.apply(app);
  const checked = next(COMPOSE);
  checked.spec.health = { ...checked.spec.health, http: { port: "http", path: "/health" }, startSeconds: 1 };
  const failure = { stage: "health", reason: "HEALTH_CHECK_FAILED", message: expect.stringContaining("GET /health failed") };
  await expect(host.apply(checked)).rejects.toMatchObject({
    ...failure,
    lines: [expect.stringContaining("started"), expect.stringContaining("the secret is")],
  });
  expect(host.report()).toMatchObject([{ state: "running", revision: 1, failure: { ...failure, revision: 2 } }]);
});
test("gives the declared variables in a file, secrets in the environment only, and nothing else", async () => {
  await host.apply(app);
  const { variables, environment } = call("up");
  const port = app.config["port"];
  expect(variables).toBe(`MODE='it\\'s $HOME'\nSECRET='hidden'\nFIXED='as it is'\nPORT='${port}'\n`);
  expect(environment["SECRET"]).toBe(SECRET);
  expect(environment).not.toHaveProperty("UNDECLARED");
  const written = readdirSync(at(), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(written.map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8")).join("\n")).not.toContain("horse");
});
test("an update that does not come up brings the previous file back, and the failure shows no secret", async () => {
  await host.apply(app);
  await expect(host.apply(next(COMPOSE.replace("nginx", "bad")))).rejects.toMatchObject({ stage: "starting", reason: "COMPOSE_FAILED" });
  const [report] = host.report();
  expect(report).toMatchObject({ state: "running", revision: 1, failure: { revision: 2, reason: "COMPOSE_FAILED" } });
  expect(report?.failure?.lines.join("\n")).toContain("exited (1) with the secret ***");
  expect(readFileSync(at("compose.yaml"), "utf8")).toContain("nginx:1.29");
});
test("a full disk of the engine is DISK_FULL, and a missing docker NO_DOCKER", async () => {
  const { spec } = app;
  const full = { ...app, spec: { ...spec, environment: { ...spec.environment, FULL: { secret: "SECRET" } } } };
  await expect(host.apply(full)).rejects.toMatchObject({ stage: "fetching", reason: "DISK_FULL" });
  const without = createComposeHost({ folder: join(folder, "other"), time, docker: join(folder, "none"), secretsOf: async () => ({ SECRET }) });
  await expect(without.apply(app)).rejects.toMatchObject({ reason: "NO_DOCKER" });
  await without.close();
});
test("stops a project with its time to end, and removes it with or without its volumes", async () => {
  await host.apply(app);
  await host.apply({ ...app, state: "stopped" });
  expect(call("down").arguments.slice(-4)).toEqual(["down", "--remove-orphans", "--timeout", "2"]);
  await host.apply({ ...app, state: "removed", keepVolumes: true });
  expect(calls().some(({ arguments: given }) => given.includes("--volumes"))).toBe(false);
  await host.apply(app);
  await host.apply({ ...app, state: "removed" });
  expect(calls().at(-1)?.arguments.slice(-3)).toEqual(["down", "--volumes", "--remove-orphans"]);
  expect(existsSync(at())).toBe(false);
});
test("shows the project's log in the order of its times, without terminal codes, with secrets masked", async () => {
  await host.apply(app);
  expect(await host.tail(app.appId, 2)).toEqual(["2026-01-02T00:00:00Z started", "2026-01-02T00:00:01Z the secret is ***"]);
  expect(call("logs").arguments.slice(-6)).toEqual(["logs", "--no-color", "--no-log-prefix", "--timestamps", "--tail", "2"]);
  const following = new AbortController();
  const lines = host.follow(app.appId, following.signal)[Symbol.asyncIterator]();
  expect(await lines.next()).toEqual({ done: false, value: "2026-01-02T00:00:01Z the secret is ***" });
  following.abort();
  expect(await lines.next()).toMatchObject({ done: true });
});
test.each(ESCAPES)("refuses a project that asks for $way, before docker sees it", async (wayOut) => {
  const failure = { stage: "refused", reason: COMPOSE_REFUSED, message: expect.stringContaining(`${wayOut.path}: `) };
  await expect(host.apply(next(written(wayOut)))).rejects.toMatchObject(failure);
  expect(existsSync(join(folder, "calls"))).toBe(false);
});
test("refuses a project that docker resolves into more than is allowed, and brings the previous one back", async () => {
  await host.apply(app);
  const project = app.appId.toLowerCase();
  for (const [at, wayOut] of ESCAPES.filter(({ resolvedAway }) => !resolvedAway)
    .slice(0, 3)
    .entries()) {
    writeFileSync(join(folder, "resolved"), JSON.stringify(resolved(wayOut, project)));
    const failure = { stage: "refused", reason: COMPOSE_REFUSED, message: expect.stringContaining(`${wayOut.path}: `) };
    await expect(host.apply({ ...next(COMPOSE), revision: at + 2 })).rejects.toMatchObject(failure);
  }
  expect(verbs().filter((verb) => verb === "pull")).toHaveLength(1);
  rmSync(join(folder, "resolved"));
  expect(await host.apply({ ...next(COMPOSE), revision: 9 })).toMatchObject({ state: "running", revision: 9 });
});
test("a project that is refused as it is written leaves the one that runs alone", async () => {
  await host.apply(app);
  const before = verbs().length;
  await expect(host.apply(next(written({ service: { privileged: true } })))).rejects.toMatchObject({ reason: COMPOSE_REFUSED });
  expect(host.report()).toEqual([expect.objectContaining({ state: "running", revision: 1, failure: expect.objectContaining({ revision: 2 }) })]);
  expect(verbs().slice(before)).not.toContain("down");
});
test("refuses a variable of the app that docker would take for its own setting", async () => {
  for (const name of ["HTTP_PROXY", "HOME", "DOCKER_HOST", "COMPOSE_FILE"]) {
    const spec = { ...app.spec, environment: { ...app.spec.environment, [name]: { value: "x" } } };
    await expect(host.apply({ ...app, spec })).rejects.toMatchObject({ stage: "refused", reason: "VARIABLE_RESERVED" });
  }
});
test("gives docker its own settings and nothing else of the agent's environment", async () => {
  const own = {
    DOCKER_CONFIG: folder,
    DOCKER_CERT_PATH: "/certificates",
    DOCKER_TLS_VERIFY: "1",
    HTTPS_PROXY: "http://192.0.2.1:3128",
    no_proxy: "example.org",
  };
  for (const [name, value] of Object.entries({ ...own, AGENT_TOKEN: "not for docker" })) vi.stubEnv(name, value);
  await host.apply(app);
  expect(call("up").environment).toMatchObject(own);
  expect(call("up").environment).not.toHaveProperty("AGENT_TOKEN");
});
test("refuses an app that is no project", async () => {
  await expect(host.apply(desiredApp(await freePort()))).rejects.toMatchObject({ stage: "refused", reason: "KIND_REFUSED" });
});
