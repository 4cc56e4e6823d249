// A backup and a restore of a gibibyte by the agent's engine, in turns beside plain restic and tar. Ours stop and start the app, read the backup back, and
// restore beside the data before they swap it.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { desiredApp } from "../../agent-sim/host/desired.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { serveRepositories } from "../../platform/repositories/served.ts";
import { openEngine, treeHash } from "../../release/backups/real-engine.ts";
import { median } from "../arithmetic.ts";
import type { MetricId } from "../metrics.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

export interface BackupsPlan {
  readonly rounds: number;
  readonly files: number;
  readonly fileBytes: number;
}

const PASSWORD = "correct horse";
const run = (command: string, words: readonly string[], env: NodeJS.ProcessEnv = {}, cwd?: string): void => {
  execFileSync(command, words, { env: { PATH: process.env["PATH"], ...env }, stdio: ["ignore", "ignore", "inherit"], ...(cwd === undefined ? {} : { cwd }) });
};
/** What earlier work has written is on the disk before: otherwise whoever comes later pays for it. */
const seconds = async (work: () => unknown): Promise<number> => {
  run("sync", []);
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1_000;
};

/** Plain restic on a repository and a cache of its own. */
const plainRestic = (folder: string) => {
  const env = { RESTIC_REPOSITORY: join(folder, "plain"), RESTIC_PASSWORD: PASSWORD, HOME: folder, RESTIC_CACHE_DIR: join(folder, "cache") };
  return (...words: readonly string[]): void => run("restic", ["--quiet", ...words], env, folder);
};

type Times = Readonly<Record<"plain" | "own" | "gateway" | "tar" | "plainRestore" | "restore", number>>;

/** One of each, on fresh repositories: what is stored already costs nothing. */
const measure = async (stage: BenchStage, { files, fileBytes }: BackupsPlan): Promise<Times> => {
  const folder = mkdtempSync(join(stage.folder, "backups-"));
  const served = await serveRepositories();
  for (const right of ["read", "append"] as const) served.grants.set(right, { right, space: null });
  const one = openEngine();
  try {
    const app = desiredApp(await freePort());
    await one.harness.host.apply(app);
    const data = one.pathOf(app, "volumes", "files");
    for (let at = 0; at < files; at += 1) writeFileSync(join(data, `part-${at}`), randomBytes(fileBytes));
    const before = treeHash(data);
    const restic = plainRestic(folder);
    restic("init");
    const plain = await seconds(() => restic("backup", data));
    const archive = join(folder, "data.tar");
    const tar = await seconds(() => run("sh", ["-c", `tar -cf ${archive} -C ${data} . && sha256sum ${archive} > ${archive}.sha256`]));
    rmSync(archive);
    // Each repository is made by a backup without data: a device does that once.
    await one.create(app, { type: "config" });
    let snapshotId = "";
    const own = await seconds(async () => ({ snapshotId } = await one.create(app)));
    const target = join(folder, "restored");
    mkdirSync(target);
    const plainRestore = await seconds(() => restic("restore", "latest", "--target", target, "--verify"));
    rmSync(target, { recursive: true });
    const restore = await seconds(() => one.restore(app, snapshotId));
    if (treeHash(data) !== before) throw new InvalidRun("the restored data is not what was backed up");
    one.environment["RESTIC_REPOSITORY"] = `rest:${served.url.replace("//", "//device:append@")}/restic/dev_1/`;
    await one.reopen();
    await one.create(app, { type: "config" });
    const gateway = await seconds(() => one.create(app));
    if (served.errors.length > 0) throw new InvalidRun(`the gateway's repository failed: ${String(served.errors[0])}`);
    return { plain, own, gateway, tar, plainRestore, restore };
  } finally {
    await one.close();
    await served.close();
    rmSync(folder, { recursive: true, force: true });
  }
};

const RATIOS: readonly (readonly [id: MetricId, ours: keyof Times, over: keyof Times])[] = [
  ["backup-restic", "own", "plain"],
  ["backup-gateway", "gateway", "plain"],
  ["backup-tar", "own", "tar"],
  ["restore-restic", "restore", "plainRestore"],
];

export const backups = async (stage: BenchStage, plan: BackupsPlan): Promise<readonly Finding[]> => {
  const rounds: Times[] = [];
  for (let round = 0; round < plan.rounds; round += 1) rounds.push(await measure(stage, plan));
  return RATIOS.map(([id, ours, over]): Finding => {
    const ratios = rounds.map((times) => times[ours] / times[over]);
    const figures = [ours, over].map((name) => `${name} ${median(rounds.map((times) => times[name as keyof Times])).toFixed(1)} s`);
    return { id, value: median(ratios), span: [Math.min(...ratios), Math.max(...ratios)], rounds, note: figures.join(", ") };
  });
};
