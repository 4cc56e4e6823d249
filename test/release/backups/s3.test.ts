// A bucket as destination: the agent's engine with real restic against a double of S3 that checks every signature.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HandlerFailure } from "../../../agent-sim/agent/index.ts";
import { checkSettings, locate } from "../../../server/features/backup-destinations/settings.ts";
import { desiredApp } from "../../agent-sim/host/desired.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { type S3Double, startS3 } from "../../kit/net/s3.ts";
import { type EngineHarness, newId, openEngine, remove, treeHash } from "./real-engine.ts";

const KEYS = { accessKeyId: "backups", secretAccessKey: "a secret of the bucket" };
let one: EngineHarness;
let s3: S3Double;
beforeEach(async () => {
  one = openEngine();
  s3 = await startS3({ bucket: "backups", ...KEYS });
  use(KEYS);
});
afterEach(async () => {
  await one.close();
  await s3.close();
});
/** What the gateway gives the agent of such a destination. */
const use = (credentials: typeof KEYS, bucket = "backups"): void => {
  const settings = checkSettings("s3", { endpoint: s3.url, bucket, prefix: "fleet", region: "eu-1" });
  const { repository, environment } = locate({ kind: "s3", settings, credentials, repositoryId: "rep_1" }, null);
  Object.assign(one.environment, environment, { RESTIC_REPOSITORY: repository });
};
const started = async () => {
  const app = desiredApp(await freePort());
  await one.harness.host.apply(app);
  const files = one.pathOf(app, "volumes", "files");
  writeFileSync(join(files, "key"), Buffer.alloc(300_000, "value "));
  return { app, files };
};
const reasonOf = async (work: Promise<unknown>): Promise<unknown> => {
  const error = await work.then(
    () => "it succeeded",
    (reason: unknown) => reason,
  );
  return error instanceof HandlerFailure ? (error.output as { readonly reason: string }).reason : error;
};

test("an app is backed up to a bucket, verified, restored, deleted and pruned, with bodies that are signed chunk by chunk", async () => {
  const { app, files } = await started();
  const before = treeHash(files);
  const made = await one.create(app);
  expect([...s3.objects.keys()].every((key) => key.startsWith("fleet/rep_1/"))).toBe(true);
  expect(s3.seen.chunked).toBeGreaterThan(3);
  const order = { backupId: newId("bak"), appId: app.appId, snapshotId: made.snapshotId, mode: "checksum" } as const;
  expect(await one.engine.verify(order, one.context())).toEqual({ bytes: made.size });
  remove(files);
  await one.restore(app, made.snapshotId);
  expect(treeHash(files)).toBe(before);
  const destinationId = newId("bkd");
  expect(await one.engine.delete({ destinationId, snapshotIds: [made.snapshotId] }, one.context())).toMatchObject({ deleted: [made.snapshotId] });
  expect(await one.engine.prune({ destinationId }, one.context())).toMatchObject({ checked: true });
  expect(s3.seen.refusals.filter((code) => code !== "NoSuchKey")).toEqual([]);
});

test("a wrong key, a bucket that is missing and one that was deleted meanwhile fail a backup, and the app runs", { timeout: 120_000 }, async () => {
  const { app } = await started();
  await one.create(app);
  use({ ...KEYS, secretAccessKey: "another" });
  expect(await reasonOf(one.create(app))).toBe("REPOSITORY_UNREACHABLE");
  expect(s3.seen.refusals).toContain("SignatureDoesNotMatch");
  use(KEYS);
  s3.loseBucket();
  // restic asks by HEAD, whose answer has no body that tells a bucket from a key. Nothing is made in its place.
  expect(await reasonOf(one.create(app))).toBe("REPOSITORY_MISSING");
  expect(one.harness.host.report().find(({ appId }) => appId === app.appId)?.state).toBe("running");
});
