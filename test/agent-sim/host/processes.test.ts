// The process host and real processes: what they get, how they end, what is left of them, and what the host makes of a bad folder, disk or port.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isAlive, nameProcess } from "../../../agent-sim/host/processes/proc.ts";
import type { DesiredApp, ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { desiredApp, inMode } from "./desired.ts";
import { fillableDisk, openProcesses, type ProcessHarness, SECRET } from "./harness.ts";

let harness: ProcessHarness;
let port: number;
const ended: (() => unknown)[] = [];
beforeEach(async () => {
  harness = openProcesses();
  port = await freePort();
});
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
  await harness.close();
});

const at = (app: DesiredApp, ...names: readonly string[]): string => join(harness.folder, "apps", app.appId, ...names);
const ask = async (path: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
const facts = async (): Promise<{ pid: number; mode: string; folder: string }> => JSON.parse(await ask("/"));
const reportOn = ({ appId }: DesiredApp): ReportedApp | undefined => harness.host.report().find((app) => app.appId === appId);
const lives = (pid: number): boolean => {
  const name = nameProcess(pid);
  return name !== null && isAlive(name);
};
const reasonOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "none",
    (error: { readonly reason?: string }) => error.reason ?? String(error),
  );
/** Every file below the app's folder, as one text. */
const everythingOf = (app: DesiredApp): string =>
  readdirSync(at(app), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))
    .join("\n");

describe("a process", () => {
  test("gets the variables that its spec declares and no others", async () => {
    harness.secrets = { SECRET, UNDECLARED: "not for you" };
    const app = desiredApp(port);
    await harness.host.apply(app);
    expect(JSON.parse(await ask("/environment"))).toEqual({
      MODE: "serve",
      PORT: String(port),
      SECRET,
      FIXED: "as it is",
      DATA_DIR: at(app, "volumes", "files"),
      MOORING_APP: at(app),
    });
  });
  test("that is not known is refused", async () => {
    expect(await reasonOf(harness.host.apply(desiredApp(port, { spec: { program: "unknown" } })))).toBe("UNKNOWN_PROGRAM");
  });
  test("is refused if its program is a link that leads out of the folder of programs", async () => {
    const programs = join(harness.folder, "programs");
    mkdirSync(join(programs, "fixture"), { recursive: true });
    symlinkSync("/etc/hostname", join(programs, "fixture", "main.mjs"));
    const host = await harness.reopen({ programs });
    expect(await reasonOf(host.apply(desiredApp(port)))).toBe("LINK_REFUSED");
  });
  test("of a container is refused", async () => {
    const { spec, ...app } = desiredApp(port);
    const { kind: _kind, program: _program, ...common } = spec as Extract<DesiredApp["spec"], { kind: "process" }>; // as: desiredApp makes no other
    expect(await reasonOf(harness.host.apply({ ...app, spec: { ...common, kind: "compose", compose: "services: {}" } }))).toBe("KIND_REFUSED");
  });
  test("that ignores SIGTERM is killed after its time, with everything that it has started", async () => {
    const app = desiredApp(port, { config: { port, mode: "deaf" }, spec: { stopSeconds: 1 } });
    await harness.host.apply(app);
    const { pid } = await facts();
    await harness.host.apply({ ...app, state: "stopped" });
    expect(lives(pid)).toBe(false);
    expect(await harness.host.tail(app.appId, 5)).toEqual(expect.arrayContaining([expect.stringMatching(/heard nothing$/)]));
    expect(reportOn(app)).toMatchObject({ state: "stopped", failure: null });
  });
  test("leaves no child behind, even one that ignores SIGTERM", async () => {
    const app = desiredApp(port, { config: { port, mode: "parent" } });
    await harness.host.apply(app);
    const { pid } = await facts();
    const [child = 0] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
    expect(lives(child)).toBe(true);
    await harness.host.apply({ ...app, state: "stopped" });
    expect([lives(pid), lives(child)]).toEqual([false, false]);
  });
  test("that never gets healthy has failed after its time to start, and does not go on running", async () => {
    const app = desiredApp(port, { config: { port, mode: "ill" } });
    app.spec.health.startSeconds = 1;
    expect(await reasonOf(harness.host.apply(app))).toBe("HEALTH_CHECK_FAILED");
    expect(reportOn(app)?.failure).toMatchObject({
      stage: "health",
      message: expect.stringContaining("500"),
      lines: expect.arrayContaining([expect.stringContaining("mode ill")]),
    });
    await expect(ask("/")).rejects.toThrow();
  });
  test("without a health check has started once it lives for a while, and has failed if it does not", async () => {
    const { http: _http, ...health } = desiredApp(port).spec.health;
    // It ends within the time that it would have to live.
    expect(await reasonOf(harness.host.apply(inMode(desiredApp(port, { spec: { health } }), "exit")))).toBe("EXITED");
    await harness.reopen({ supervision: { settleMs: 200 } });
    expect(await harness.host.apply(desiredApp(await freePort(), { spec: { health } }))).toMatchObject({ state: "running", health: "healthy" });
  });
  test("is measured", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    expect(reportOn(app)?.memoryBytes).toBeGreaterThan(10_000_000);
    expect(await eventually(() => reportOn(app)?.cpuPercent ?? Promise.reject(new Error("not measured")))).toBeGreaterThanOrEqual(0);
  });
});

describe("a running app", () => {
  test("that ends is started again and counted", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    const { pid } = await facts();
    await ask("/end").catch(() => "");
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "running", health: "healthy", restarts: 1, failure: null }));
    expect((await facts()).pid).not.toBe(pid);
  });
  test("that ends again and again is given up, with the reason and its last lines", async () => {
    await harness.reopen({ supervision: { lookMs: 50, backoffMs: 10, maxBackoffMs: 20, crashes: 2 } });
    const app = desiredApp(port);
    await harness.host.apply(app);
    await eventually(async () => {
      await ask("/say?text=the%20end").catch(() => "");
      await ask("/end").catch(() => "");
      expect(reportOn(app)).toMatchObject({ state: "failed", restarts: 2, failure: { stage: "running", reason: "CRASH_LOOP", revision: 1 } });
    }, 20_000);
    expect(reportOn(app)?.failure).toMatchObject({
      message: expect.stringContaining("it ended with code 4"),
      lines: expect.arrayContaining([expect.any(String)]),
    });
    expect(await (await harness.reopen()).apply(app)).toMatchObject({ state: "running", restarts: 0, failure: null });
  });
  test("that ends while the disk is full is started again when there is space, however long that takes", async () => {
    const crashes = 2;
    const disk = fillableDisk();
    await harness.reopen({ disk, supervision: { lookMs: 20, backoffMs: 10, maxBackoffMs: 20, crashes } });
    const app = desiredApp(port);
    await harness.host.apply(app);
    disk.writesLeft = 0;
    await ask("/end").catch(() => "");
    // Beside the noted restart, each try writes once.
    await eventually(() => expect(disk.refused).toBeGreaterThan(3 * crashes));
    expect(reportOn(app)).toMatchObject({ state: "running", health: "unhealthy", failure: null });
    disk.writesLeft = Number.POSITIVE_INFINITY;
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "running", health: "healthy", failure: null }));
  });
  test("whose check fails is reported as unhealthy, and as healthy when it recovers", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    process.kill((await facts()).pid, "SIGSTOP");
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "running", health: "unhealthy" }), 20_000);
    for (const pid of groupOf(app)) process.kill(pid, "SIGCONT");
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "running", health: "healthy", restarts: 0 }));
  });
});

/** The shim's id is the group's. */
const groupOf = (app: DesiredApp): readonly number[] => {
  const { pid } = JSON.parse(readFileSync(at(app, "pid"), "utf8"));
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return [pid, ...children.split(" ").map(Number)];
};

describe("logs", () => {
  test("are bounded, whatever the program writes", async () => {
    await harness.reopen({ supervision: { logBytes: 100_000 } });
    const app = desiredApp(port, { config: { port, mode: "serve", lines: 3_000 } });
    await harness.host.apply(app);
    await eventually(async () => expect((await harness.host.tail(app.appId, 30)).join("\n")).toContain("line 2999 "));
    const bytes = ["log", "log.1"].map((name) => statSync(at(app, name)).size);
    expect(bytes[0]).toBeLessThanOrEqual(50_000);
    expect(bytes[1]).toBeLessThanOrEqual(50_000);
  });
  test("are followed across rotations without a gap", async () => {
    await harness.reopen({ supervision: { logBytes: 20_000 } });
    const app = desiredApp(port);
    await harness.host.apply(app);
    const [enough, lines] = [new AbortController(), [] as string[]];
    const following = (async () => {
      for await (const line of harness.host.follow(app.appId, enough.signal)) lines.push(line);
    })();
    await eventually(async () => {
      await ask("/say?text=first");
      expect(lines.length).toBeGreaterThan(0);
    });
    const said = (): readonly number[] => lines.flatMap((line) => /number-(\d+)-/.exec(line)?.[1] ?? []).map(Number);
    // Five are half of what the log holds before it is turned, so a look misses no turn.
    for (let number = 0; number < 30; number += 1) {
      await ask(`/say?text=number-${number}-${"x".repeat(900)}`);
      if (number % 5 === 4) await eventually(() => expect(said().at(-1)).toBe(number));
    }
    enough.abort();
    await following;
    expect(said()).toEqual(Array.from({ length: 30 }, (_, number) => number));
    expect(existsSync(at(app, "log.1"))).toBe(true);
  });
  test("and files show no secret, not even one of several lines", async () => {
    harness.secrets = { SECRET: `${SECRET}\nsecond half` };
    const app = inMode(desiredApp(port), "exit");
    expect(await reasonOf(harness.host.apply(app))).toBe("EXITED");
    const lines = reportOn(app)?.failure?.lines.join("\n");
    expect(lines).toContain("the secret is ***");
    expect(lines).not.toMatch(/horse|second half/);
    expect(everythingOf(app)).not.toMatch(/horse|second half/);
  });
  test("hide a secret that lies across the end of a line that is too long", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    await ask(`/say?text=${"x".repeat(10_000)}`);
    const long = `${"x".repeat(5_000)}`;
    await ask(`/say?text=${long}${encodeURIComponent(SECRET)}${long}`);
    await eventually(async () => expect((await harness.host.tail(app.appId, 1))[0]).toContain("***"));
    expect(everythingOf(app)).not.toContain("horse");
  });
});

describe("the agent's end", () => {
  test("leaves its apps running; the next agent adopts them and watches them", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    const { pid } = await facts();
    const host = await harness.reopen();
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "running", revision: 1, health: "healthy", restarts: 0 }));
    expect((await facts()).pid).toBe(pid);
    await ask("/end").catch(() => "");
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "running", health: "healthy", restarts: 1 }));
    expect(await host.apply({ ...app, state: "stopped" })).toMatchObject({ state: "stopped" });
  });
  test("does not keep a program from being noticed that ended meanwhile", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    await harness.host.close();
    await ask("/end").catch(() => "");
    await harness.reopen();
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "running", health: "healthy", restarts: 1 }));
  });
  test("does not make it take another process for its own, whose id is the same", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    await harness.host.close();
    for (const pid of groupOf(app)) process.kill(pid, "SIGKILL");
    const stranger: ChildProcess = spawn(process.execPath, ["-e", "setInterval(() => 0, 1000)"], { detached: true });
    const pid = stranger.pid ?? 0;
    ended.push(() => stranger.kill("SIGKILL"));
    writeFileSync(at(app, "pid"), JSON.stringify({ ...JSON.parse(readFileSync(at(app, "pid"), "utf8")), pid }));
    const host = await harness.reopen();
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "running", health: "healthy", restarts: 1 }));
    await host.apply({ ...app, state: "removed" });
    expect(lives(pid)).toBe(true);
  });
});

describe("the folder", () => {
  test("holds nothing of a removed app", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    const { pid } = await facts();
    writeFileSync(at(app, "volumes", "files", "mine"), "data");
    await harness.host.apply({ ...app, state: "removed" });
    expect([lives(pid), existsSync(at(app))]).toEqual([false, false]);
  });
  test("keeps the volumes of a removed app if it is told to, for when the app comes back", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    writeFileSync(at(app, "volumes", "files", "mine"), "data");
    await harness.host.apply({ ...app, state: "removed", keepVolumes: true });
    expect(readdirSync(at(app))).toEqual(["volumes"]);
    const host = await harness.reopen();
    expect(host.report()).toEqual([]);
    await host.apply(app);
    expect(readFileSync(at(app, "volumes", "files", "mine"), "utf8")).toBe("data");
  });
  test.each([
    ["a volume", ["volumes", "files"]],
    ["all volumes", ["volumes"]],
    ["the revisions", ["revisions"]],
  ])("that has a link in place of %s is refused, and what it leads to is untouched", async (_what, names) => {
    const app = desiredApp(port, { state: "stopped" });
    await harness.host.apply(app);
    const elsewhere = join(harness.folder, "elsewhere");
    mkdirSync(elsewhere);
    writeFileSync(join(elsewhere, "precious"), "data");
    rmSync(at(app, ...names), { recursive: true, force: true });
    mkdirSync(dirname(at(app, ...names)), { recursive: true });
    symlinkSync(elsewhere, at(app, ...names));
    expect(await reasonOf(harness.host.apply(inMode(app, "serve")))).toBe("LINK_REFUSED");
    await harness.host.apply({ ...app, state: "removed" });
    expect(readdirSync(elsewhere)).toEqual(["precious"]);
  });
  test("on a full disk: the change fails with DISK_FULL, what runs goes on, and the change succeeds when there is space", async () => {
    const disk = fillableDisk();
    await harness.reopen({ disk });
    const app = desiredApp(port);
    await harness.host.apply(app);
    const { pid } = await facts();
    disk.writesLeft = 0;
    expect(await reasonOf(harness.host.apply(inMode(app, "serve")))).toBe("DISK_FULL");
    expect(reportOn(app)).toMatchObject({ state: "running", revision: 1, failure: { reason: "DISK_FULL", revision: 2 } });
    expect((await facts()).pid).toBe(pid);
    disk.writesLeft = Number.POSITIVE_INFINITY;
    expect(await harness.host.apply(inMode(app, "serve"))).toMatchObject({ state: "running", revision: 2, failure: null });
  });
  test("on a disk that fills up within a change: the app fails with DISK_FULL, and the next agent carries the change on", async () => {
    const disk = fillableDisk();
    await harness.reopen({ disk });
    const app = desiredApp(port);
    await harness.host.apply(app);
    // The revision and the record fit; the id of the new process does not.
    disk.writesLeft = 2;
    harness.host.apply(inMode(app, "serve")).catch(() => undefined);
    await eventually(() => expect(harness.changes.at(-1)).toMatchObject({ state: "failed", failure: { reason: "DISK_FULL", revision: 2 } }));
    disk.writesLeft = Number.POSITIVE_INFINITY;
    await harness.reopen({ disk });
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "running", revision: 2, health: "healthy" }));
  });
});

describe("a damaged folder", () => {
  test.each([
    ["record", ["record.json"], "{"],
    ["record of another form", ["record.json"], '{"current":"x"}'],
    ["revision", ["revisions", "1.json"], ""],
  ])("with a bad %s is a failed app, which the next order replaces, and no other app suffers", async (_what, names, text) => {
    const [app, other] = [desiredApp(port), desiredApp(await freePort())];
    await harness.host.apply(app);
    await harness.host.apply(other);
    const { pid } = await facts();
    await harness.host.close();
    writeFileSync(at(app, ...names), text);
    await harness.reopen();
    expect(reportOn(app)).toMatchObject({ state: "failed", failure: { reason: "RECORD_DAMAGED" } });
    await eventually(() => expect(lives(pid)).toBe(false));
    await eventually(() => expect(reportOn(other)).toMatchObject({ state: "running", health: "healthy", restarts: 0 }));
    expect(await harness.host.apply(app)).toMatchObject({ state: "running", failure: null });
  });
  test("whose interrupted change cannot be carried on is a failed app", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    await harness.host.close();
    const change = { kind: "update", to: 9, from: 1, before: "running", state: "running", failure: null };
    writeFileSync(at(app, "record.json"), JSON.stringify({ ...JSON.parse(readFileSync(at(app, "record.json"), "utf8")), change }));
    await harness.reopen();
    await eventually(() => expect(reportOn(app)).toMatchObject({ state: "failed", failure: { reason: "RECORD_DAMAGED" } }));
    expect(await harness.host.apply(app)).toMatchObject({ state: "running", revision: 1, failure: null });
  });
});

describe("a port", () => {
  const occupy = (): Promise<Server> =>
    new Promise((resolve) => {
      const server = createServer().listen({ port, host: "127.0.0.1" }, () => resolve(server));
      ended.push(() => server.close());
    });

  test("that another process holds is a failure before anything starts", async () => {
    await occupy();
    const app = desiredApp(port);
    expect(await reasonOf(harness.host.apply(app))).toBe("PORT_TAKEN");
    expect(reportOn(app)).toMatchObject({ state: "failed", revision: 0, failure: { stage: "preparing", message: expect.stringContaining(String(port)) } });
  });
  test("that is taken does not stop the revision that runs", async () => {
    const app = desiredApp(await freePort());
    await harness.host.apply(app);
    await occupy();
    expect(await reasonOf(harness.host.apply({ ...app, revision: 2, config: { ...app.config, port } }))).toBe("PORT_TAKEN");
    expect(reportOn(app)).toMatchObject({ state: "running", revision: 1, health: "healthy", failure: { reason: "PORT_TAKEN", revision: 2 } });
  });
});
