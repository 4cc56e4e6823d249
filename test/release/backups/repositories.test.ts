// restic as the client of the gateway's repositories.
import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RepositoryRight } from "../../../protocol/index.ts";
import { runRestic, type Served, serveRepositories } from "../../platform/repositories/served.ts";

let served: Served;
beforeAll(async () => {
  served = await serveRepositories();
  for (const right of ["read", "append", "forget", "prune"] as const) served.grants.set(right, { right, space: null });
});
afterAll(() => served.close());

test("restic backs up, restores, prunes and checks through the gateway, and each step needs its right", { timeout: 180_000 }, async () => {
  const work = join(served.folder, "work");
  await mkdir(join(work, "data"), { recursive: true });
  const big = randomBytes(3_000_000);
  await writeFile(join(work, "data", "big"), big);
  const as = (right: RepositoryRight) => `rest:${served.url.replace("//", `//device:${right}@`)}/restic/dev_1/`;
  const restic = (right: RepositoryRight, ...words: string[]) => runRestic(as(right), words, work);
  const succeeds = async (right: RepositoryRight, ...words: string[]): Promise<string> => {
    const { code, output, errors } = await restic(right, ...words);
    expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
    return output;
  };

  await succeeds("append", "init");
  await succeeds("append", "backup", "data");
  await succeeds("read", "restore", "latest", "--target", "restored", "--verify");
  expect(await readFile(join(work, "restored", "data", "big"))).toEqual(big);
  const ids = await readdir(join(served.folder, "dev_1", "snapshots"));
  expect(ids).toHaveLength(1);
  const [pack = ""] = await readdir(join(served.folder, "dev_1", "data"), { recursive: true }).then((names) => names.filter((name) => name.length > 64));
  for (const [right, path] of [
    ["append", `snapshots/${ids[0]}`],
    ["read", `snapshots/${ids[0]}`],
    ["forget", `data/${pack.slice(3)}`],
  ] as const)
    expect((await served.call(right, "DELETE", `dev_1/${path}`)).status).toBe(403);
  await succeeds("prune", "forget", "--prune", ids[0] ?? "");
  await succeeds("read", "check", "--read-data");
  expect(served.changes.reduce((sum, bytes) => sum + bytes, 0)).toBe(await served.store.usedBytes("dev_1"));
  expect(served.errors).toEqual([]);
});
