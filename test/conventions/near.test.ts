// `npm run test:near` chooses by feature, folder and name, the nearest first, and leaves out what does not fit into a minute.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT, runToEnd } from "../flows/processes.ts";
import { BUDGET, DEARER, overrunsOf } from "../kit/setup/budget.ts";
import { choose } from "../near/choose.ts";

const TESTS = [
  "test/conventions/sources.test.ts",
  "test/conventions/documents.test.ts",
  "test/channel/session.test.ts",
  "test/features/fleets/fleets.test.ts",
  "test/features/fleets/rules.test.ts",
  "test/features/roles/roles.test.ts",
  "test/flows/demo.test.ts",
  "test/platform/mail/mail.test.ts",
  "test/platform/keys/secrets.test.ts",
  "test/release/restarts.test.ts",
];
const chosen = (...changed: readonly string[]): readonly string[] => choose(changed, TESTS).run.filter((test) => !test.includes("sources"));

describe("near tests", () => {
  test.each<[changed: string, near: readonly string[]]>([
    ["server/features/fleets/store.ts", ["test/features/fleets/fleets.test.ts", "test/features/fleets/rules.test.ts"]],
    ["protocol/groups/roles.ts", ["test/features/roles/roles.test.ts"]],
    ["prisma/schema/roles.prisma", ["test/features/roles/roles.test.ts"]],
    ["server/platform/mail/queue.ts", ["test/platform/mail/mail.test.ts"]],
    ["server/platform/keys/secrets.ts", ["test/platform/keys/secrets.test.ts"]],
    ["server/gateway/channel/session-wheel.ts", ["test/channel/session.test.ts"]],
    ["docs/apps.md", ["test/conventions/documents.test.ts"]],
    ["test/features/fleets/kit.ts", ["test/features/fleets/fleets.test.ts", "test/features/fleets/rules.test.ts"]],
    ["test/flows/demo.test.ts", ["test/flows/demo.test.ts"]],
    ["agent-sim/demo.ts", []],
    ["LICENSE", []],
    ["test/vitest.config.ts", []],
  ])("%s is followed by %j", (changed, near) => {
    expect(chosen(changed)).toEqual(near);
  });

  test("every change is followed by the searches of the whole text, no change by nothing", () => {
    expect(choose(["LICENSE"], TESTS).run).toEqual(["test/conventions/sources.test.ts"]);
    expect(choose([], TESTS)).toEqual({ run: [], left: [] });
  });

  test("tests without the time for them are named", () => {
    const many = Array.from({ length: 100 }, (_, index) => `test/features/new-feature/a${index}.test.ts`);
    const { run, left } = choose(["server/features/new-feature/store.ts"], many);
    expect(run.length).toBeLessThan(60);
    expect([...run, ...left].sort()).toEqual([...many].sort());
  });

  test("--help says what it does", async () => {
    const { code, stdout } = await runToEnd(["npm", "run", "--silent", "test:near", "--", "--help"], { env: {} });
    expect([code, stdout]).toEqual([0, expect.stringContaining("--since")]);
  });
});

describe("the budget", () => {
  const fleets = (seconds: number) => ({ name: "test/features/new-feature/a.test.ts", seconds });

  test("the files of a feature share one bound, and another file has its own", () => {
    const other = { name: "test/features/new-feature/b.test.ts", seconds: 2 };
    expect(overrunsOf([fleets(BUDGET - 2), other, { name: "test/gateway/new.test.ts", seconds: BUDGET }])).toEqual([]);
    expect(overrunsOf([fleets(BUDGET - 1), other])).toEqual([{ subject: "test/features/new-feature", seconds: BUDGET + 1, allowed: BUDGET }]);
    expect(overrunsOf([{ name: "test/release/new.test.ts", seconds: 100 * BUDGET }])).toEqual([]);
  });

  test("what was dearer before keeps its own bound, and exists", () => {
    for (const [subject, seconds] of DEARER) {
      expect([subject, existsSync(join(ROOT, subject)), seconds > BUDGET]).toEqual([subject, true, true]);
      const name = subject.endsWith(".ts") ? subject : `${subject}/any.test.ts`;
      expect(overrunsOf([{ name, seconds }])).toEqual([]);
      expect(overrunsOf([{ name, seconds: seconds + 1 }])).toMatchObject([{ subject, allowed: seconds }]);
    }
  });
});
