// `npm run test:near` chooses by feature, folder and name, the nearest first, and leaves out what does not fit into a minute.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import type { TestSpecification, Vitest } from "vitest/node";
import { ROOT, runToEnd } from "../flows/processes.ts";
import { BUDGET, DEARER, overrunsOf } from "../kit/setup/budget.ts";
import { DearestFirst } from "../kit/setup/dearest-first.ts";
import { costBefore } from "../kit/setup/processor-time.ts";
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
    ["protocol/groups/access/roles.ts", ["test/features/roles/roles.test.ts"]],
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

test("a run begins with the dearest file of each project and puts others between the dear ones, though it knows no earlier run", async () => {
  const project = (name: string) => ({ name, config: { sequence: { groupOrder: 0 }, isolate: false } });
  const [first, second] = [project("console"), project("shared modules")];
  const dearFiles = [...DEARER].filter(([subject]) => subject.endsWith(".ts")).sort((a, b) => a[1] - b[1]);
  const [dear = "", dearest = ""] = [dearFiles[0]?.[0], dearFiles.at(-1)?.[0]];
  const files = [
    { project: first, moduleId: "/repo/test/portal/cheap.test.ts", size: 9 },
    ...[dear, dearest].map((name) => ({ project: second, moduleId: `/repo/${name}`, size: 1 })),
    { project: second, moduleId: "/repo/test/platform/cheap.test.ts", size: 9 },
  ];
  const sizes = new Map(files.map(({ project: { name }, moduleId, size }) => [`${name}:${moduleId.slice("/repo/".length)}`, { size }]));
  const cache = { getFileTestResults: () => undefined, getFileStats: (key: string) => sizes.get(key) };
  const sequencer = new DearestFirst({ config: { root: "/repo" }, cache } as unknown as Vitest);
  const sorted = await sequencer.sort([...files].reverse() as unknown as TestSpecification[]);
  expect(sorted.map(({ moduleId }) => moduleId)).toEqual([files[0], files[2], files[3], files[1]].map((file) => file?.moduleId));
});

describe("the cost of a run", () => {
  const PROCESSOR_TIME = join(ROOT, "test/kit/setup/processor-time.ts");

  test.skipIf(process.platform !== "linux")("includes the build and the checks of npm test", async () => {
    const work = "while (process.cpuUsage().user < 300_000) JSON.stringify(process.versions)";
    const look = `import { costBefore } from ${JSON.stringify(PROCESSOR_TIME)}; process.stdout.write(JSON.stringify(costBefore()));`;
    const script = '"$1" -e "$2" && "$1" --import tsx --input-type module -e "$3"; exit $?';
    const { stdout, stderr } = await runToEnd(["sh", "-c", script, "sh", process.execPath, work, look], { env: { npm_lifecycle_event: "test" } });
    expect(stderr).toBe("");
    const { wall, processor } = JSON.parse(stdout);
    expect([wall > 0, processor >= 0.3]).toEqual([true, true]);
  });

  test("is that of the tests alone if another command runs them", () => {
    vi.stubEnv("npm_lifecycle_event", "test:matrix");
    expect(costBefore()).toEqual({ wall: 0, processor: 0 });
    vi.unstubAllEnvs();
  });
});
