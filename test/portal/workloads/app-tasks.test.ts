// What people do with an app of a small installation takes them few clicks from the overview.
import { describe, expect } from "vitest";
import { openRig } from "../../features/apps/kit.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { testOpening } from "../../kit/browser/opening.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { createLogger, line } from "./logger.ts";

const { world, chromium } = await openConsole();

const test = testOpening(async () => {
  const logger = createLogger(world, [line("listening")]);
  const made = await openRig(world, { handlers: logger.handlers });
  const { deploymentId } = await made.deploy({ name: "store" });
  const { appId } = await made.until(`/deployments/${deploymentId}`, "active");
  const seen = await chromium.visitor();
  await seen.signIn(made.tenant.ownerId, { path: "/" });
  const { page } = seen;
  const apps = page.getByRole("region", { name: "Your apps" });
  await apps.getByRole("link", { name: "store", exact: true }).waitFor();
  const clicks = () => page.evaluate<number>("window.clicks");
  await page.evaluate("window.clicks = 0; document.addEventListener('click', () => { window.clicks += 1; }, true)");
  const openApp = () => apps.getByRole("link", { name: "store", exact: true }).click();
  return { rig: made, appId, page, apps, clicks, openApp, deploymentId, close: () => seen.close().then(made.stop) };
});

describe.concurrent("from the overview", () => {
  test("an app's own page opens with one click", async ({ open }) => {
    const { page, apps, clicks } = await open();
    const opened = page.waitForEvent("popup");
    await apps.getByRole("link", { name: "Open store" }).click();
    expect(await (await opened).evaluate("location.href").catch(() => "")).not.toContain(new URL(page.url()).host);
    expect(await clicks()).toBe(1);
  });

  test("the last lines of an app's log, and where it can go back to, are one click away", async ({ open }) => {
    const { rig, deploymentId, page, openApp, clicks } = await open();
    await rig.ask(`POST /deployments/${deploymentId}/redeploy`, { configuration: { maxKeys: 7 } });
    await openApp();
    await page.getByRole("region", { name: "Last lines" }).getByText("listening").waitFor();
    await page.getByRole("button", { name: "Roll back to revision 1" }).waitFor();
    expect(await clicks()).toBe(1);
  });

  test("an app is restarted with two clicks", async ({ open }) => {
    const { rig, page, openApp, clicks } = await open();
    await openApp();
    await page.getByRole("button", { name: "Restart" }).click();
    await eventually(() => expect(rig.orders.at(-1)).toMatchObject({ verb: "restart" }));
    expect(await clicks()).toBe(2);
  });

  test("an app is restarted by keyboard alone, its page is opened by `o`, and `.` opens its other actions", async ({ open }) => {
    const { rig, page } = await open();
    const walkTo = async (name: string): Promise<void> => {
      for (let step = 0; step < 60; step++) {
        await page.keyboard.press("Tab");
        if ((await page.evaluate<string>("document.activeElement.textContent")) === name) return;
      }
      throw new Error(`Tab never came to ${name}`);
    };
    await walkTo("store");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Restart" }).waitFor();
    const opened = page.waitForEvent("popup");
    await page.keyboard.press("o");
    await opened;
    await page.keyboard.press(".");
    await page.getByRole("menuitem", { name: "Remove the app" }).waitFor();
    await page.keyboard.press("Escape");
    await walkTo("Restart");
    await page.keyboard.press("Enter");
    await eventually(() => expect(rig.orders.at(-1)).toMatchObject({ verb: "restart" }));
  });
});
