// Backups of the simulated host: failures follow from the seed, and what was backed up outlives the process.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HandlerFailure } from "../../../agent-sim/agent/index.ts";
import type { BackupContext, BackupEngine } from "../../../agent-sim/host/backups/engine.ts";
import { type BackupFailures, createSimulatedEngine, openBackupMemory, type SimulatedEngineOptions } from "../../../agent-sim/host/backups/simulated-engine.ts";
import { createSimulatedHost } from "../../../agent-sim/host/simulated.ts";
import { createFastTime } from "../clocks.ts";
import { desiredApp } from "./desired.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "simulated-backups-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const context: BackupContext = { commandId: "cmd_1", signal: new AbortController().signal, progress: () => undefined };
const backupIdOf = (n: number): `bak_${string}` => `bak_${String(n).padStart(26, "0")}`;
const app = desiredApp(10_000);
const destinationId = `bkd_${"0".repeat(26)}` as const;

/** As after a start of the device: only what `at` holds is left. */
const open = ({
  seed = 1,
  failures = {},
  at = null,
  memory = openBackupMemory(at),
  ...more
}: Partial<Pick<SimulatedEngineOptions, "memory" | "onStep" | "without">> & {
  readonly seed?: number;
  readonly failures?: BackupFailures;
  readonly at?: string | null;
}): BackupEngine => {
  const time = createFastTime();
  const host = createSimulatedHost({ time, seed, secretsOf: async () => ({ SECRET: "any secret" }) });
  const find = async () => ({ key: "one", isLocal: false, mayInitialize: true, environment: {} });
  return createSimulatedEngine({ host, find, time, seed, memory, failures, ...more });
};
const create = (engine: BackupEngine, n: number) => engine.create({ backupId: backupIdOf(n), app, type: "full", consistency: "template" }, context);
const reasonOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => (error instanceof HandlerFailure ? (error.output as { readonly reason: string }).reason : error),
  );
const reasons = async (engine: BackupEngine): Promise<readonly unknown[]> => {
  const all: unknown[] = [];
  for (let n = 0; n < 100; n += 1) all.push(await reasonOf(create(engine, n)));
  return all;
};

test("a seed fails the same backups again, about as many as its share says, and another seed others", async () => {
  const failures = { reading: 0.1, reading_back: 0.1 };
  const one = await reasons(open({ failures }));
  expect(await reasons(open({ failures }))).toEqual(one);
  expect(await reasons(open({ seed: 2, failures }))).not.toEqual(one);
  expect(new Set(one)).toEqual(new Set([null, "SOURCE_UNREADABLE", "REPOSITORY_DAMAGED"]));
  const failed = one.filter((reason) => reason !== null).length;
  expect([failed > 8, failed < 35]).toEqual([true, true]);
});

test.each([
  ["restoring", "DISK_FULL"],
  ["health", "NOT_HEALTHY_AFTER_RESTORE"],
] as const)("a restore that fails while %s says %s and that the former data is kept", async (stage, reason) => {
  const engine = open({ failures: { [stage]: 1 } });
  const { snapshotId } = await create(engine, 1);
  const order = { restoreId: `rst_${"0".repeat(26)}`, backupId: backupIdOf(1), app, snapshotId, restoreType: "full", paths: [] } as const;
  const failure = await engine.restore({ ...order, paths: [], overwriteExisting: true, dryRun: false, safetyBackupId: null }, context).then(
    () => null,
    (error: unknown) => (error instanceof HandlerFailure ? error.output : error),
  );
  expect(failure).toMatchObject({ reason, previousData: "kept" });
});

test("snapshots outlive a restart of the device, and so do deletions and the free space after a prune", async () => {
  const made = await create(open({ at: folder }), 7);
  const { snapshotId } = made;
  const verify = (engine: BackupEngine) => engine.verify({ backupId: backupIdOf(7), appId: app.appId, snapshotId, mode: "checksum" }, context);
  const second = open({ at: folder });
  expect(await verify(second)).toEqual({ bytes: made.size });
  expect(await second.delete({ destinationId, snapshotIds: [snapshotId] }, context)).toEqual({ deleted: [snapshotId], missing: [] });
  const third = open({ at: folder });
  expect(await reasonOf(verify(third))).toBe("SNAPSHOT_MISSING");
  expect(await third.prune({ destinationId }, context)).toEqual({ freedBytes: made.size, checked: true });
  expect(await open({ at: folder }).prune({ destinationId }, context)).toEqual({ freedBytes: 0, checked: true });
});

test("a snapshot that got lost before it was read back fails its backup, and would not without the reading back", async () => {
  const losing = (without?: "read back") => {
    const memory = openBackupMemory(null);
    const lose = (step: string): void => {
      if (step === "stored") memory.put({ ...memory.get(), snapshots: {} });
    };
    return open({ memory, onStep: lose, ...(without === undefined ? {} : { without }) });
  };
  expect(await reasonOf(create(losing(), 9))).toBe("SNAPSHOT_MISSING");
  expect(await reasonOf(create(losing("read back"), 9))).toBe(null);
});

test("a failed deletion and a failed prune leave the snapshot where it is", async () => {
  const at = join(folder, "kept");
  const { snapshotId } = await create(open({ at }), 8);
  const failing = open({ at, failures: { deleting: 1, pruning: 1 } });
  expect(await reasonOf(failing.delete({ destinationId, snapshotIds: [snapshotId] }, context))).toBe("REPOSITORY_UNREACHABLE");
  expect(await reasonOf(failing.prune({ destinationId }, context))).toBe("REPOSITORY_LOCKED");
  expect(await open({ at }).delete({ destinationId, snapshotIds: [snapshotId] }, context)).toEqual({ deleted: [snapshotId], missing: [] });
});
