// A device as a dashboard: its problems first, its apps and what they need, and the few clicks to them.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asOrdered, failureIn, openRig, type Rig, reportOf } from "../../features/apps/kit.ts";
import { findingsInEveryLook } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { layoutFindings } from "../../kit/browser/layout.ts";

const { world, chromium } = await openConsole();
let rig: Rig;
let device: string;
const HOST = "attic.home.lan";
beforeAll(async () => {
  rig = await openRig(world);
  device = `/devices/${rig.device.deviceId}`;
  await rig.ask(`PATCH ${device}`, { name: `attic ${"of-a-long-name".repeat(6)}`, tags: ["home", "rack"] });
  const machine = { hostname: HOST, ipAddresses: ["192.168.1.20"], hardware: { cpuCores: 8, memoryBytes: 17_179_869_184 } };
  await rig.ask("PUT /agent/inventory", machine, rig.device.as);
  await rig.ask(`POST ${device}/heartbeat`, { cpu: 23, memory: 61, disk: 91 }, rig.device.as);
  const good = await rig.deploy();
  const wiki = await rig.until(`/deployments/${good.deploymentId}`, "active");
  await rig.ask(`PATCH /apps/${wiki.appId}`, { name: "wiki" });
  rig.answer(({ app }) => reportOf(app.appId, { revision: 0, state: "failed", failure: failureIn(app.revision) }));
  const bad = await rig.deploy();
  const paste = await rig.until(`/deployments/${bad.deploymentId}`, "failed");
  await rig.ask(`PATCH /apps/${paste.appId}`, { name: "paste bin" });
  rig.answer(asOrdered);
  await rig.ask(`POST ${device}/commands`, { type: "ping", notBefore: new Date(Date.now() + 3_600_000).toISOString() });
}, 60_000);
afterAll(async () => {
  await rig?.stop();
});

const visit = async (userId: string, path: string) => {
  const visitor = await chromium.visitor();
  await visitor.signIn(userId, { path });
  return { ...visitor, region: (name: string) => visitor.page.getByRole("region", { name, exact: true }) };
};

describe("the overview of a device", () => {
  test("says which app failed and why, with its log one click away, before the figures", async () => {
    const { page, region, problems, close } = await visit(rig.tenant.ownerId, device);
    await page.getByText(/^paste bin: Revision 1 failed/).waitFor();
    await page.getByText("the page answers 500").waitFor();
    const figures = region("Figures");
    expect(await figures.getByRole("link").allInnerTexts()).toEqual([
      expect.stringMatching(/^CPU\s+[\d.]+ %\s+of 8 cores$/),
      expect.stringMatching(/^Memory\s+[\d.]+ %\s+[\d.]+ [GM]B of 16 GB$/),
      expect.stringMatching(/^Disk\s+[\d.]+ %/),
      expect.stringMatching(/^Reachable/),
    ]);
    const apps = region("Apps");
    expect(await apps.getByRole("row").allInnerTexts()).toEqual([
      expect.anything(),
      expect.stringMatching(/paste bin\s+error/),
      expect.stringMatching(/wiki\s+running/),
    ]);
    expect(await apps.getByRole("link", { name: "Open wiki" }).getAttribute("href")).toMatch(/^http:\/\/(attic\.home\.lan|192\.168\.1\.20):8701/);
    await region("Open commands").getByText("Held back until its time").waitFor();
    await region("Activity").getByText("came online").first().waitFor();
    await page.getByRole("link", { name: "Show the log" }).click();
    await page.getByRole("heading", { level: 1, name: "paste bin" }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  test("has no finding in any look", { timeout: 120_000 }, async () => {
    const { page, problems, close } = await visit(rig.tenant.ownerId, device);
    await page.getByText("the page answers 500").waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.keyboard.press(".");
    await page.getByRole("menuitem", { name: "Begin maintenance" }).waitFor();
    expect(await layoutFindings(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  test("opens its menu by `.` and each tab by Alt and its number, and old addresses still work", async () => {
    const { page, go, close } = await visit(rig.tenant.ownerId, device);
    await page.getByRole("button", { name: "More actions" }).waitFor();
    await page.keyboard.press(".");
    await page.getByRole("menuitem", { name: "Begin maintenance" }).press("Enter");
    await page.getByText("In maintenance", { exact: true }).waitFor();
    await page.keyboard.press(".");
    await page.getByRole("menuitem", { name: "End maintenance" }).press("Enter");
    await page.getByText("In maintenance", { exact: true }).waitFor({ state: "detached" });
    await go(`${device}?tab=metrics`);
    await page.getByRole("link", { name: "Metrics" }).and(page.locator("[aria-current=page]")).waitFor();
    await page.keyboard.press("Alt+2");
    await page.getByRole("grid", { name: "Apps" }).waitFor();
    await page.keyboard.press("Alt+3");
    await page.getByRole("grid", { name: "Commands" }).getByText("ping").first().waitFor();
    await go(`${device}?command=unknown`);
    await page.getByRole("link", { name: "Commands", exact: true }).and(page.locator("[aria-current=page]")).waitFor();
    await close();
  });

  test("offers a viewer neither an action nor its menu", async () => {
    const viewer = await rig.tenant.user("viewer");
    const { page, region, problems, close } = await visit(rig.tenant.ownerId.replace("owner", "viewer"), device);
    expect(viewer).toBeDefined();
    await region("Open commands").getByText("Held back until its time").waitFor();
    for (const name of ["Send a command", "More actions"]) expect(await page.getByRole("button", { name }).count(), name).toBe(0);
    expect(await page.getByRole("link", { name: "Install an app" }).count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  test("of one that is offline says so first, dims its figures with their age, and opens nothing there", async () => {
    const { page, region, close } = await visit(rig.tenant.ownerId, device);
    await region("Apps").getByRole("link", { name: "Open wiki" }).waitFor();
    await rig.stop();
    await page.getByText(/^Offline for/).waitFor();
    await page.getByText("Commands wait until it connects, or until their time is over.").waitFor();
    await page.locator("section[data-dimmed]").waitFor();
    expect(await region("Apps").getByRole("button", { name: "Open wiki" }).isDisabled()).toBe(true);
    await region("Figures")
      .getByText(/ago|now/)
      .first()
      .waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    await close();
    await rig.start();
  });
});

describe("from the overview of the tenant", () => {
  test("one click tells how a device's apps are, and `c` sends it a ping", async () => {
    const { page, region, close } = await visit(rig.tenant.ownerId, "/");
    await page
      .getByRole("link", { name: /^attic/ })
      .first()
      .waitFor();
    await page.evaluate("window.clicks = 0; document.addEventListener('click', ({ detail }) => { if (detail > 0) window.clicks += 1; }, true)");
    await page
      .getByRole("link", { name: /^attic/ })
      .first()
      .click();
    await region("Apps").getByText("error", { exact: true }).waitFor();
    expect(await page.evaluate("window.clicks")).toBe(1);
    await page.keyboard.press("c");
    await page.getByRole("dialog").getByLabel("Type").fill("ping");
    await page.keyboard.press("Enter");
    await region("ping").waitFor();
    expect(await page.evaluate("window.clicks")).toBe(1);
    await page.keyboard.press("Alt+1");
    await region("Apps").waitFor();
    await page.evaluate("window.clicks = 1");
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Send a ping" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
    await region("ping").waitFor();
    expect(await page.evaluate("window.clicks")).toBe(4);
    await close();
  });
});
