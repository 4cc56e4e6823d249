// What deployments and reports cost the database, in statements.
import pg from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { openRig, type Rig, reportOf } from "./kit.ts";

let world: World;
const open: Rig[] = [];
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_AGENT: "off" });
});
afterAll(async () => {
  await Promise.all(open.map((rig) => rig.stop()));
  await world.close();
});

/** The statements that the gateway sends about apps while `work` runs: their first words and their tables. */
const OF_APPS = /\b(apps|app_metrics|deployments|desired_versions|app_snapshots|deployment_revisions)\b/;
const statementsOf = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
  const spy = vi.spyOn(pg.Client.prototype, "query");
  try {
    await work();
    const texts = spy.mock.calls.map(([given]) => (typeof given === "string" ? given : String((given as { text?: string } | undefined)?.text)));
    return texts.filter((text) => OF_APPS.test(text));
  } finally {
    spy.mockRestore();
  }
};
const isWrite = (text: string): boolean => /^(insert|update|delete)\b|for no key update/i.test(text);

const running = async (count: number) => {
  const rig = await openRig(world);
  open.push(rig);
  const made = await Promise.all(Array.from({ length: count }, () => rig.deploy()));
  const rows = await Promise.all(made.map(({ deploymentId }) => rig.until(`/deployments/${deploymentId}`, "active")));
  const reports = rows.map(({ appId }) => reportOf(appId));
  await rig.report(count, ...reports);
  return { rig, reports, paths: rows.map(({ appId }) => `GET /apps/${appId}`) };
};

test("a deployment writes and locks fourteen times until it is active, however many there are", async () => {
  const rig = await openRig(world);
  open.push(rig);
  const deploy = async (): Promise<void> => {
    const { deploymentId } = await rig.deploy();
    await rig.until(`/deployments/${deploymentId}`, "active");
  };
  const first = (await statementsOf(deploy)).filter(isWrite);
  for (let n = 0; n < 5; n += 1) await deploy();
  const seventh = (await statementsOf(deploy)).filter(isWrite);
  expect(seventh.map((text) => text.slice(0, 40)).sort()).toEqual(first.map((text) => text.slice(0, 40)).sort());
  expect(first.length).toBeLessThanOrEqual(14);
});
test("a report that changes nothing but figures is one statement that writes, and reads the same for one app as for many", async () => {
  const [one, many] = [await running(1), await running(4)];
  const figures = { cpuPercent: 7, memoryBytes: 2_097_152, responseMs: 3 };
  const changed = many.reports.map((said) => ({ ...said, ...figures }));
  const [few, more] = [await statementsOf(() => one.rig.report(1, ...one.reports)), await statementsOf(() => many.rig.report(4, ...changed))];
  expect(more.filter(isWrite)).toEqual([expect.stringContaining("insert into app_metrics")]);
  expect(more).toHaveLength(few.length);
  for (const path of many.paths) expect((await many.rig.ask(path)).reported).toMatchObject(figures);
});
test("a report that knows a newer version and otherwise says the same writes no app by itself", async () => {
  const { rig, reports, paths } = await running(3);
  const [id = "", ...others] = paths.map((path) => path.slice("GET /apps/".length));
  await rig.ask(`POST /apps/${id}/stop`);
  await rig.until(`/apps/${id}`, "stopped");
  const [first, ...rest] = reports;
  if (first === undefined) throw new Error("no app");
  const said = { ...first, state: "stopped" as const };
  const written = await statementsOf(() => rig.report(4, said, ...rest));
  expect(written.filter(isWrite)).toEqual([expect.stringContaining("insert into app_metrics")]);
  const versions = await world.sql.query("select reported_version from apps where app_id = any($1)", [[id, ...others]]);
  expect(versions.rows).toEqual(reports.map(() => ({ reported_version: 4 })));
});
test("of a report that changes one app only that app is written", async () => {
  const { rig, reports, paths } = await running(3);
  const [first, ...others] = reports;
  if (first === undefined) throw new Error("no app");
  const written = await statementsOf(() => rig.report(3, { ...first, restarts: 1 }, ...others));
  expect(written.filter(isWrite).map((text) => text.slice(0, 6))).toEqual(["select", "UPDATE", "with s"]);
  const shown = await Promise.all(paths.map((path) => rig.ask(path)));
  expect(shown.map(({ reported }) => reported.restarts)).toEqual([1, 0, 0]);
});
test("a report that changes nothing but comes after a change of state is heard", async () => {
  const { rig, reports, paths } = await running(1);
  const [said] = reports;
  if (said === undefined) throw new Error("no app");
  const crashed = { ...said, state: "failed" as const };
  await rig.report(1, crashed);
  expect(await rig.ask(paths[0] ?? "")).toMatchObject({ status: "error" });
  await rig.report(1, said);
  expect(await rig.ask(paths[0] ?? "")).toMatchObject({ status: "running" });
});
