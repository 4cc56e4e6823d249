// Backups of a Compose app on a real Docker Engine, by its mount points: stopped, paused, with a hook, restored after the loss of its volume, and on another device.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { systemTime as time } from "../../../agent-sim/agent/index.ts";
import type { BackupEngine } from "../../../agent-sim/host/backups/engine.ts";
import { openRealEngine, openRestic } from "../../../agent-sim/host/backups/real-engine.ts";
import { createComposeHost } from "../../../agent-sim/host/compose.ts";
import type { DataHost } from "../../../agent-sim/host/host.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { newAppId } from "../../agent-sim/host/desired.ts";
import { type DockerEngine, startDockerEngine } from "../../kit/docker/engine.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { newId, treeHash } from "./real-engine.ts";

const IMAGE = "mooring-test/web:1.0.0";
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 });

let engine: DockerEngine;
let folder: string;
let host: DataHost;
let backups: BackupEngine;

beforeAll(async () => {
  engine = await startDockerEngine();
  await engine.makeImage(IMAGE);
  for (const [name, value] of Object.entries(engine.environment)) vi.stubEnv(name, value);
  folder = mkdtempSync(join(tmpdir(), "containers-"));
  mkdirSync(join(folder, "repository"));
  host = createComposeHost({ folder, time, supervision: { lookMs: 200, backoffMs: 100 }, secretsOf: async () => ({}) });
  const own = join(folder, "backups");
  const environment = { RESTIC_REPOSITORY: join(folder, "repository"), RESTIC_PASSWORD: "correct horse" };
  const find = async () => ({ key: "one", isLocal: true, mayInitialize: true, environment });
  backups = openRealEngine({ host, find, deviceId: "dev_1", folder: own, time, restic: openRestic({ time, folder: own }) });
}, 60_000);
afterAll(async () => {
  await host.close();
  const containers = (await engine.docker("ps", "--all", "--quiet")).split("\n").filter((id) => id !== "");
  if (containers.length > 0) await engine.docker("rm", "--force", "--volumes", ...containers);
  vi.unstubAllEnvs();
  await engine.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

const port = (): string => ["$", "{HTTP_PORT}"].join("");
const COMPOSE = JSON.stringify({
  services: {
    web: {
      image: IMAGE,
      restart: "unless-stopped",
      command: ["sh", "-c", "echo ok > /www/health; trap 'exit 0' TERM; httpd -f -p 80 -h /www & wait"],
      ports: [`${port()}:80`],
      volumes: ["files:/www"],
      healthcheck: { test: ["CMD", "cat", "/www/health"], interval: "1s", timeout: "5s", retries: 20 },
    },
  },
  volumes: { files: {} },
});
const appWith = async (backup?: DesiredApp["spec"]["backup"], image = IMAGE): Promise<DesiredApp> => ({
  appId: newAppId(),
  deploymentId: null,
  name: "Web",
  template: "web",
  templateVersion: "1.0.0",
  revision: 1,
  state: "running",
  keepVolumes: false,
  config: { port: await freePort() },
  secretsVersion: 0,
  spec: {
    kind: "compose",
    compose: COMPOSE.replace(IMAGE, image),
    environment: { HTTP_PORT: { config: "port" } },
    ports: [{ name: "http", protocol: "tcp", config: "port", target: 80 }],
    volumes: [],
    health: { http: { port: "http", path: "/health" }, intervalSeconds: 1, timeoutSeconds: 2, retries: 2, startSeconds: 30 },
    ...(backup === undefined ? {} : { backup }),
    stopSeconds: 1,
  },
});
const context = () => ({ commandId: "cmd_1", signal: new AbortController().signal, progress: () => undefined });
const create = (app: DesiredApp) => backups.create({ backupId: newId("bak"), app, type: "full", consistency: "template" }, context());
const restore = (app: DesiredApp, snapshotId: string) =>
  backups.restore(
    {
      restoreId: newId("rst"),
      backupId: newId("bak"),
      app,
      snapshotId,
      restoreType: "full",
      paths: [],
      overwriteExisting: true,
      dryRun: false,
      safetyBackupId: null,
    },
    context(),
  );
const container = async ({ appId }: DesiredApp): Promise<string> =>
  (await engine.docker("ps", "--quiet", "--filter", `label=com.docker.compose.project=${appId.toLowerCase()}`)).trim();
const run = async (app: DesiredApp, ...words: string[]): Promise<string> => engine.docker("exec", await container(app), ...words);
const mountOf = async ({ appId }: DesiredApp): Promise<string> =>
  (await engine.docker("volume", "inspect", "--format", "{{.Mountpoint}}", `${appId.toLowerCase()}_files`)).trim();
const page = async ({ config }: DesiredApp, path: string): Promise<string> => (await fetch(`http://127.0.0.1:${config["port"]}/${path}`)).text();

test("a container's volume is backed up, lost and restored with the same tree, and comes to another device", async () => {
  const app = await appWith();
  await host.apply(app);
  const first = await container(app);
  await run(app, "sh", "-c", "echo 'two bottles' > /www/milk; mkdir /www/deep; ln -s /etc/passwd /www/deep/out; echo kept > /www/deep/kept");
  // What the program writes at its start is not the same.
  const tree = async (): Promise<string> => treeHash(join(await mountOf(app), "deep"));
  const before = await tree();
  const made = await create(app);
  expect(made).toMatchObject({ consistency: "stopped", partial: false, warnings: [] });
  // `stop` leaves the container as it is.
  expect(await container(app)).toBe(first);
  expect(await tree()).toBe(before);

  for (const name of ["milk", "deep"]) rmSync(join(await mountOf(app), name), { recursive: true });
  expect(await restore(app, made.snapshotId)).toEqual({ files: made.files, bytes: made.size, verified: true });
  expect(await page(app, "milk")).toBe("two bottles\n");
  expect(await tree()).toBe(before);

  const other = await appWith();
  await restore(other, made.snapshotId);
  expect(await page(other, "milk")).toBe("two bottles\n");
  expect(host.report().map(({ state }) => state)).toEqual(["running", "running"]);
  const volumes = await host.data.volumes();
  expect(volumes.map(({ name, appId }) => [name, appId])).toEqual(expect.arrayContaining([[`${app.appId.toLowerCase()}_files`, app.appId]]));
});

test("a folder that the image declares as a volume and that no volume of the project covers is named in the backup that lacks it", async () => {
  const declaring = "mooring-test/declaring:1.0.0";
  await engine.makeImage(declaring, "VOLUME /www /cache");
  const app = await appWith(undefined, declaring);
  await host.apply(app);
  expect((await create(app)).warnings).toEqual([expect.stringMatching(/^\/cache of the service web is not in this backup/)]);
});

test("a hook runs in its container, and a paused container goes on", async () => {
  const hooked = await appWith({
    mode: "pause",
    beforeUpdates: false,
    hooks: {
      pre: { service: "web", command: ["sh", "-c", "echo dumped > /www/dump"], timeoutSeconds: 30 },
      post: { command: ["sh", "-c", "echo over > /www/after"], timeoutSeconds: 30 },
    },
  });
  await host.apply(hooked);
  const made = await create(hooked);
  expect(made).toMatchObject({ consistency: "paused", warnings: [] });
  expect(await page(hooked, "after")).toBe("over\n");
  await restore(hooked, made.snapshotId);
  expect(await page(hooked, "dump")).toBe("dumped\n");

  const failing = await appWith({ mode: "live", beforeUpdates: false, hooks: { pre: { command: ["false"], timeoutSeconds: 30 } } });
  await host.apply(failing);
  await expect(create(failing)).rejects.toMatchObject({ code: "HOOK_FAILED" });
  expect(await page(failing, "health")).toBe("ok\n");
});
