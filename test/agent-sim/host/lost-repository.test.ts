// Where no repository is, the agent makes one only if the gateway knows that none has been there.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemTime } from "../../../agent-sim/agent/index.ts";
import { type Restic, ResticFailure } from "../../../agent-sim/host/backups/restic.ts";
import { openSnapshots, type Snapshots } from "../../../agent-sim/host/backups/snapshots.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "lost-repository-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const NO_CONFIG = "Fatal: unable to open config file: stat /backups/config: no such file or directory";

/** A restic that finds no repository until one was made, and the words that it got. */
const over = (mayInitialize: boolean): { readonly snapshots: Snapshots; readonly words: string[] } => {
  const words: string[] = [];
  const restic: Restic = {
    version: async () => "0.14.0",
    endLeftovers: () => undefined,
    run: async ([word = ""], { stage, onLine }) => {
      words.push(word);
      if (word !== "init" && !words.includes("init")) throw new ResticFailure(stage, [NO_CONFIG], "1");
      if (word === "backup")
        onLine?.(JSON.stringify({ message_type: "summary", snapshot_id: "ab", data_added: 1, total_files_processed: 1, total_bytes_processed: 1 }));
      return { code: 0, complaints: [] };
    },
  };
  const { signal } = new AbortController();
  const repository = { key: "one", isLocal: false, mayInitialize, environment: {} };
  return { words, snapshots: openSnapshots({ restic, repository, time: systemTime, folder: mkdtempSync(join(folder, "one-")), signal, closing: signal }) };
};
const ORDER = { cwd: "/", paths: ["data"], tags: [], host: "dev_1" };
const ignore = (): void => undefined;

test("the first backup makes the repository", async () => {
  const { snapshots, words } = over(true);
  expect(await snapshots.write(ORDER, ignore)).toMatchObject({ files: 1 });
  expect(words).toEqual(["backup", "init", "backup"]);
});

test("a later backup and a test fail by name and make none", async () => {
  const { snapshots, words } = over(false);
  const missing = { said: { reason: "REPOSITORY_MISSING", message: expect.stringContaining("nothing was made"), lines: [NO_CONFIG] } };
  await expect(snapshots.write(ORDER, ignore)).rejects.toMatchObject(missing);
  await expect(snapshots.ensure("testing")).rejects.toMatchObject(missing);
  expect(words).toEqual(["backup", "cat"]);
});
