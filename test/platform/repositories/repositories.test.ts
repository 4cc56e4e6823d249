// The gateway's restic repositories, as strangers meet them. test/release/backups/repositories.test.ts has restic as the client.
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { RepositoryRight } from "../../../protocol/index.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Served, serveRepositories } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await serveRepositories({ idleMs: 300 });
});
afterAll(() => served.close());

const RIGHTS: readonly RepositoryRight[] = ["read", "append", "forget", "prune"];
beforeEach(() => {
  served.grants.clear();
  for (const right of RIGHTS) served.grants.set(right, { right, space: null });
});

const hashOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const put = (path: string, body: Buffer, token = "append") => served.call(token, "POST", path, { body });
const filesBelow = async (repository: string): Promise<string[]> => {
  const entries = await readdir(join(served.folder, repository), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
};
/** Sends the head of an upload and these bytes, and no more. */
const beginUpload = (path: string, bytes: Buffer, length: number) => {
  const authorization = `Basic ${Buffer.from("device:append").toString("base64")}`;
  const upload = request(`${served.url}/restic/${path}`, { method: "POST", headers: { authorization, "content-length": length } });
  upload.on("error", () => undefined);
  upload.write(bytes);
  return upload;
};

test("a file that is not what its name says is refused and leaves nothing behind", async () => {
  const bytes = randomBytes(50_000);
  const name = hashOf(bytes);
  const wrong = Buffer.from(bytes);
  wrong[49_999] = (wrong[49_999] ?? 0) ^ 1;
  expect((await put(`dev_2/data/${name}`, wrong)).status).toBe(400);
  expect(await filesBelow("dev_2")).toEqual([]);
  expect((await put(`dev_2/data/${name}`, bytes)).status).toBe(200);
  expect(await filesBelow("dev_2")).toEqual([name]);
});

test("a file is never overwritten, and the same upload again is answered like the first", async () => {
  const bytes = randomBytes(1_000);
  const path = `dev_3/data/${hashOf(bytes)}`;
  const before = served.changes.length;
  const answers = await Promise.all(Array.from({ length: 6 }, () => put(path, bytes)));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200));
  expect(served.changes.slice(before)).toEqual([1_000]);
  expect((await put("dev_3/config", Buffer.from("one"))).status).toBe(200);
  expect((await put("dev_3/config", Buffer.from("one"))).status).toBe(200);
  expect((await put("dev_3/config", Buffer.from("two"))).status).toBe(403);
  expect(await (await served.call("read", "GET", "dev_3/config")).text()).toBe("one");
});

test("an upload that breaks off or stands still leaves nothing behind, and others go on", async () => {
  const bytes = randomBytes(20_000);
  const path = `dev_4/data/${hashOf(bytes)}`;
  const cut = beginUpload(path, bytes.subarray(0, 10_000), bytes.length);
  await eventually(async () => expect(await filesBelow("dev_4")).toHaveLength(1));
  expect((await put(path, bytes)).status).toBe(200);
  cut.destroy();
  beginUpload(path, bytes.subarray(0, 10_000), bytes.length);
  await eventually(async () => expect(await filesBelow("dev_4")).toHaveLength(2));
  await eventually(async () => expect(await filesBelow("dev_4")).toEqual([hashOf(bytes)]));
});

test("what an interrupted node left behind is removed once it is too old to be written still", async () => {
  const folder = join(served.folder, "dev_5", "unfinished");
  await mkdir(folder, { recursive: true });
  for (const [name, ageSeconds] of [
    ["old", 8_000],
    ["young", 60],
  ] as const) {
    await writeFile(join(folder, name), "x");
    const at = Date.now() / 1_000 - ageSeconds;
    await utimes(join(folder, name), at, at);
  }
  const bytes = randomBytes(10);
  expect((await put(`dev_5/data/${hashOf(bytes)}`, bytes)).status).toBe(200);
  expect(await readdir(folder)).toEqual(["young"]);
});

test("the storage limit refuses an upload before and while it comes, counts those under way, and spares locks", async () => {
  served.grants.set("append", { right: "append", space: 5_000 });
  const bytes = randomBytes(6_000);
  expect((await put(`dev_6/data/${hashOf(bytes)}`, bytes)).status).toBe(507);
  const half = randomBytes(3_000);
  const first = beginUpload(`dev_6/data/${hashOf(half)}`, half.subarray(0, 100), half.length);
  await eventually(async () => expect(await filesBelow("dev_6")).toHaveLength(1));
  const other = randomBytes(3_000);
  expect((await put(`dev_6/data/${hashOf(other)}`, other)).status).toBe(507);
  first.destroy();
  await eventually(async () => expect((await put(`dev_6/data/${hashOf(other)}`, other)).status).toBe(200));
  served.grants.set("append", { right: "append", space: 0 });
  const lock = Buffer.from("a lock");
  expect((await put(`dev_6/locks/${hashOf(lock)}`, lock)).status).toBe(200);
  expect((await served.call("append", "DELETE", `dev_6/locks/${hashOf(lock)}`)).status).toBe(200);
});

test("parts of a file are served as asked", async () => {
  const bytes = randomBytes(1_000);
  const path = `dev_7/index/${hashOf(bytes)}`;
  await put(path, bytes);
  const part = async (range: string) => {
    const answer = await served.call("read", "GET", path, { headers: { range } });
    return { status: answer.status, range: answer.headers.get("content-range"), bytes: Buffer.from(await answer.arrayBuffer()) };
  };
  expect(await part("bytes=10-19")).toEqual({ status: 206, range: "bytes 10-19/1000", bytes: bytes.subarray(10, 20) });
  expect(await part("bytes=990-")).toEqual({ status: 206, range: "bytes 990-999/1000", bytes: bytes.subarray(990) });
  expect(await part("bytes=-5")).toEqual({ status: 206, range: "bytes 995-999/1000", bytes: bytes.subarray(995) });
  expect(await part("bytes=900-5000")).toMatchObject({ status: 206, range: "bytes 900-999/1000" });
  expect((await part("bytes=1000-")).status).toBe(416);
  expect((await part("bytes=20-10")).status).toBe(416);
  expect(await part("bytes=0-1,5-6")).toMatchObject({ status: 200, bytes });
  const head = await served.call("read", "HEAD", path);
  expect([head.status, head.headers.get("content-length")]).toEqual([200, "1000"]);
});

test("a damaged file on the disk does not end the service, and a file that is gone is not found", async () => {
  const bytes = randomBytes(100);
  const name = hashOf(bytes);
  await put(`dev_8/data/${name}`, bytes);
  await rm(join(served.folder, "dev_8", "data", name.slice(0, 2), name));
  expect((await served.call("read", "GET", `dev_8/data/${name}`)).status).toBe(404);
  await mkdir(join(served.folder, "dev_8", "data", name.slice(0, 2), name));
  expect((await served.call("read", "GET", `dev_8/data/${name}`)).status).toBe(404);
  expect((await put(`dev_8/data/${name}`, bytes)).status).toBe(403);
  expect((await served.call("prune", "DELETE", `dev_8/data/${name}`)).status).toBe(404);
});

test("without a token, or with one for nothing here, nothing is told", async () => {
  for (const token of [null, "", "unknown"])
    for (const path of ["dev_1/config", "dev_9/", "dev_9/data/"]) {
      const answer = await served.call(token, "GET", path);
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, 'Basic realm="restic"']);
    }
});
