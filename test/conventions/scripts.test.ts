// A signal to npm reaches the program that a script starts only if the shell between them has made way.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";

const Package = z.object({ scripts: z.record(z.string(), z.string()) });
const { scripts } = Package.parse(JSON.parse(readFileSync(fileURLToPath(new URL("../../package.json", import.meta.url)), "utf8")));
/** They end by themselves, after one step of work. */
const WORK = new Set([
  "build",
  "build:client",
  "check",
  "check:types",
  "check:lint",
  "check:imports",
  "check:openapi",
  "format",
  "test",
  "test:release",
  "test:near",
  "test:budget",
  "test:matrix",
  "fuzz",
]);
const STEPS = /^(docs:|db:|new$|generate$)/;
const lasting = Object.entries(scripts).filter(([name]) => !WORK.has(name) && !STEPS.test(name));

describe("npm scripts", () => {
  test.each(lasting)("`%s` hands its process over to the program that lasts", (_name, script) => {
    expect(script.split(" && ").at(-1)).toMatch(/^exec /);
  });
  test("that run for as long as somebody wants are among them", () => {
    expect(lasting.map(([name]) => name)).toEqual(expect.arrayContaining(["start", "demo", "dev", "sim", "agent", "chaos", "cli", "bench"]));
  });
});
