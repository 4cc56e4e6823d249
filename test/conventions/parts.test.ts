// Every test file runs in `npm test` or in `npm run test:release`, once.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { ROOT, runToEnd } from "../flows/processes.ts";

const { scripts } = z
  .object({ scripts: z.object({ test: z.string(), "test:release": z.string() }) })
  .parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));
const Files = z.array(z.object({ file: z.string() }));

/** The files that a script's vitest runs. */
const filesOf = async (script: string): Promise<readonly string[]> => {
  const [, options = ""] = /vitest run (.*)$/.exec(script) ?? [];
  const words = options.split(" ").map((word) => word.replaceAll("'", ""));
  const { stdout, stderr } = await runToEnd([process.execPath, join(ROOT, "node_modules/vitest/vitest.mjs"), "list", "--filesOnly", "--json", ...words], {
    env: {},
  });
  expect(stderr).toBe("");
  return Files.parse(JSON.parse(stdout)).map(({ file }) => file.slice(ROOT.length));
};

test("npm test and npm run test:release together run every file once", { timeout: 60_000 }, async () => {
  const [suite, release] = await Promise.all([filesOf(scripts.test), filesOf(scripts["test:release"])]);
  const written = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".test.ts"));
  expect([...suite, ...release].sort()).toEqual(written.map((name) => `test/${name}`).sort());
  expect(new Set(release)).toEqual(new Set(release.filter((file) => file.startsWith("test/release/"))));
});
