// Apps and deployments in light and dark, wide and on a phone, with a failure, drift and a log on the page: nothing to complain of.
import { afterAll, beforeAll, expect, test } from "vitest";
import { failureIn, openRig, type Rig, reportOf } from "../../features/apps/kit.ts";
import { findingsInEveryLook } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { createLogger, line } from "../../portal/workloads/logger.ts";

const { world, chromium } = await openConsole();
let rig: Rig;
let path: { readonly app: string; readonly deployment: string };
const LINES = ["starting", `GET /${"a-long-address/".repeat(30)} 500`];
beforeAll(async () => {
  const logger = createLogger(
    world,
    LINES.map((each) => line(each)),
  );
  rig = await openRig(world, { handlers: logger.handlers });
  const { deploymentId } = await rig.deploy({ name: `store ${"of-a-long-name".repeat(5)}` });
  const { appId } = await rig.until(`/deployments/${deploymentId}`, "active");
  path = { app: `/apps/${appId}`, deployment: `/deployments/${deploymentId}` };
  await rig.ask(`POST ${path.app}/snapshots`, { metadata: { note: "before the holidays" } });
  rig.answer(({ app }) => reportOf(app.appId, { revision: 1, failure: failureIn(app.revision, { lines: LINES }) }));
  await rig.ask(`POST ${path.deployment}/redeploy`, { configuration: { maxKeys: 7 } });
  await rig.until(path.deployment, "active");
  const { version } = await rig.ask("GET /agent/desired-state", undefined, rig.device.as);
  await rig.report(version, reportOf(appId, { state: "stopped" }));
  await rig.ask(`PATCH /devices/${rig.device.deviceId}`, { name: "nas" });
  await rig.ask("PUT /agent/inventory", { arch: "x64", runtimes: ["compose"], hardware: { memoryBytes: 4e9 } }, rig.device.as);
  const kiosk = await rig.tenant.device();
  await rig.ask(`PATCH /devices/${kiosk.deviceId}`, { name: `kiosk ${"of-a-long-name".repeat(5)}` });
  await rig.ask("PUT /agent/inventory", { arch: "arm", runtimes: [], hardware: { memoryBytes: 1e9 } }, kiosk.as);
}, 60_000);
afterAll(async () => {
  await rig?.stop();
});

test("every page is without a finding in every look", { timeout: 240_000 }, async () => {
  const { page, problems, signIn, go, close } = await chromium.visitor();
  await signIn(rig.tenant.ownerId, { path: path.app });
  const findings: string[] = [];
  const check = async (at: string): Promise<void> => {
    for (const finding of await findingsInEveryLook(page)) findings.push(`${at}: ${finding}`);
  };
  const visit = async (at: string): Promise<void> => {
    await go(at);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    if (at.endsWith("=logs")) await page.getByRole("region", { name: "Lines of the log" }).getByText("starting").waitFor();
    await check(at);
  };
  for (const tab of ["overview", "logs", "configuration", "secrets", "history&revision=2"]) await visit(`${path.app}?tab=${tab}`);
  await page.getByRole("grid", { name: "Snapshots" }).getByText("before the holidays").click();
  await page.getByRole("region", { name: "Snapshot", exact: true }).waitFor();
  await check("a snapshot");
  await visit(path.deployment);
  for (const at of [`/devices/${rig.device.deviceId}?tab=apps`, "/apps", "/deployments"]) await visit(at);
  for (const at of ["/catalogue", "/catalogue?fits=mine&q=passwords&category=news", "/catalogue/immich", "/catalogue/key-value"]) await visit(at);
  await go("/catalogue?category=media");
  await page.getByRole("button", { name: "Install Jellyfin" }).click();
  await page.getByRole("dialog").getByRole("radio", { name: "nas" }).waitFor();
  await check("the form of an application");
  expect(findings).toEqual([]);
  expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await close();
});
