// Files that are small and inflate to much more are refused or read within 64 MiB.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { constants, gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gunzipLines } from "../../../server/features/imports/gunzip-lines.ts";

const MIB = 1_048_576;

describe("bombs", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const zeros = (mebibytes: number): Buffer => gzipSync(Buffer.alloc(mebibytes * MIB), { level: constants.Z_BEST_COMPRESSION });
  const lines = (mebibytes: number): Buffer => gzipSync(Buffer.alloc(mebibytes * MIB, `{"a":"${"b".repeat(1_000)}"}\n`));
  /** What is in memory at most, beyond what was before. */
  let [before, most] = [0, 0];
  const measure = (): void => {
    most = Math.max(most, process.memoryUsage().rss - before);
  };
  const parts = async function* (file: Uint8Array, times = 1): AsyncGenerator<Uint8Array> {
    for (let time = 0; time < times; time += 1)
      for (let from = 0; from < file.length; from += MIB) {
        measure();
        yield file.subarray(from, from + MIB);
      }
  };
  test.each<[string, () => AsyncIterable<Uint8Array>]>([
    ["zeros", () => parts(zeros(96))],
    ["zeros within a gzip", () => parts(gzipSync(zeros(96)))],
    ["a line that never ends", () => parts(gzipSync(Buffer.alloc(96 * MIB, "a")))],
    ["a line that never ends, member by member", () => parts(gzipSync(Buffer.alloc(100_000, "ab")), 2_000)],
    ["line feeds", () => parts(gzipSync(Buffer.alloc(96 * MIB, "\n")))],
    ["lines alike", () => parts(lines(96))],
    ["lines alike, member by member", () => parts(lines(1), 512)],
    ["members without a byte", () => parts(Buffer.alloc(200_000 * gzipSync("").length, gzipSync("")))],
    ["a gzip and a huge tail", () => parts(Buffer.concat([gzipSync("x\n"), Buffer.alloc(64 * MIB)]))],
    [
      "zeros after many honest bytes",
      () => parts(Buffer.concat([gzipSync(Buffer.from(Array.from({ length: 100_000 }, (_none, at) => `${at * 7_919}\n`).join(""))), zeros(96)])),
    ],
  ])("%s: refused or read within 64 MiB", async (_name, bomb) => {
    const source = bomb();
    collect();
    [before, most] = [process.memoryUsage().rss, 0];
    let inflated = 0;
    const read = async (): Promise<void> => {
      for await (const texts of gunzipLines(source)) {
        inflated += texts.reduce((sum, text) => sum + text.length, 0);
        measure();
      }
    };
    await read().catch((error: unknown) => expect(error).toMatchObject({ code: "IMPORT_INVALID" }));
    measure();
    expect(most / MIB).toBeLessThan(64);
    expect(inflated).toBeLessThan(1_024 * MIB);
  });
});

test("control: inflated at once, a bomb takes more than that", () => {
  const bomb = gzipSync(Buffer.alloc(128 * MIB));
  const before = process.memoryUsage().rss;
  const inflated = gunzipSync(bomb);
  expect(inflated.length).toBe(128 * MIB);
  expect((process.memoryUsage().rss - before) / MIB).toBeGreaterThan(64);
});
