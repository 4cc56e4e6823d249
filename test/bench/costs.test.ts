// What a command costs, on figures that a person can check: processor time by part, growth of tables, the rate that callers kept, samples by part.
import { expect, test } from "vitest";
import { keptRate } from "./benches/cluster.ts";
import { PROCESSORS } from "./machine.ts";
import { type ProcessorSample, treeNs, treeOf, useBetween } from "./processor-time.ts";
import { type CpuProfile, sharesOf, statementPart, sums } from "./profile-parts.ts";
import { growth } from "./storage.ts";

const SECOND = 1_000_000_000;
const sample = (atMs: number, busyNs: number, partNs: ProcessorSample["partNs"]): ProcessorSample => ({ atMs, busyNs, partNs });

test("processor time is divided by the work and by part, and the rest of the machine is foreign", () => {
  const before = sample(0, 5 * SECOND, { gateway: SECOND, postgres: 2 * SECOND });
  const use = useBetween(before, sample(1_000, 6.5 * SECOND, { gateway: 1.5 * SECOND, postgres: 2.25 * SECOND }), 1_000);
  expect(use).toMatchObject({ totalUs: 750, partUs: { gateway: 500, postgres: 250 } });
  expect(use.foreign).toBeCloseTo(0.75 / PROCESSORS);
});

test("a process tree contains this process, and its time only grows", () => {
  expect(treeOf(process.pid)[0]).toBe(process.pid);
  const before = treeNs(process.pid);
  expect(before).toBeGreaterThan(0);
  expect(treeNs(process.pid)).toBeGreaterThanOrEqual(before);
});

test("growth is given per command and table, the largest first, without tables that stayed", () => {
  const before = new Map([
    ["commands", 1_000],
    ["devices", 500],
    ["tenants", 8],
  ]);
  const after = new Map([
    ["devices", 600],
    ["commands", 2_000],
    ["tenants", 8],
    ["command_keys", 300],
  ]);
  expect(growth(before, after, 10)).toEqual([
    { table: "commands", bytesEach: 100 },
    { table: "command_keys", bytesEach: 30 },
    { table: "devices", bytesEach: 10 },
  ]);
});

test("a rate that the callers did not keep in every round is not sound", () => {
  const rounds = (...rates: number[]) => rates.map((answeredPerSecond) => ({ answeredPerSecond }));
  expect(keptRate(rounds(2_000, 1_950), 2_000)).toEqual({ note: "1950/s kept" });
  expect(keptRate(rounds(2_000, 1_899), 2_000)).toEqual({ unsound: true, note: "the callers kept only 1899/s" });
});

const call = (id: number, [functionName, url]: readonly [string, string], children: readonly number[] = []): CpuProfile["nodes"][number] => ({
  id,
  callFrame: { functionName, url: url === "" ? "" : `file:///home/mooring/dist/${url}` },
  children: [...children],
});

test("a sample counts for the part whose file is on top of it, or for the nearest caller that has one", () => {
  const profile: CpuProfile = {
    nodes: [
      call(1, ["(root)", ""], [2, 5, 6, 7]),
      call(2, ["onRequest", "server/gateway/rest.js"], [3]),
      call(3, ["enqueue", "server/features/commands/enqueue.js"], [4]),
      call(4, ["ulid", "server/core/ids.js"]),
      call(5, ["(garbage collector)", ""]),
      call(6, ["(idle)", ""]),
      call(7, ["tick", "server/platform/jobs.js"]),
    ],
    samples: [2, 3, 4, 5, 6, 7],
    timeDeltas: [40, 20, 10, 20, 900, 10],
  };
  const { parts, files } = sharesOf([profile]);
  expect([...parts]).toEqual([
    ["REST call", 0.4],
    ["row", 0.3],
    ["garbage", 0.2],
    ["rest", 0.1],
  ]);
  expect(files.get("server/core/ids.js")).toBe(0.1);
});

test("a statement counts for the part that it serves", () => {
  const texts = [
    "with fresh as (insert into commands (command_id) values ($1))",
    "DELETE FROM command_queue q",
    "insert into outbox_events select $1",
    "select $1",
  ];
  expect(texts.map(statementPart)).toEqual(["PostgreSQL create", "PostgreSQL finish", "PostgreSQL events", "PostgreSQL, other statements"]);
  expect([
    ...sums([
      ["a", 1],
      ["b", 5],
      ["a", 2],
    ]),
  ]).toEqual([
    ["b", 5],
    ["a", 3],
  ]);
});
