// Menus and dialogs of the frame, of a device and of an app, open in every width and both schemes; and menus where the browser has no popovers.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRig, type Rig } from "../../features/apps/kit.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { layoutFindings } from "../../kit/browser/layout.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { findings, focused } from "../../portal/frame/stage.ts";

const { world, chromium } = await openConsole();
let rig: Rig;
let app: string;
let device: string;
beforeAll(async () => {
  rig = await openRig(world);
  const { deploymentId } = await rig.deploy({ name: "store" });
  app = `/apps/${(await rig.until(`/deployments/${deploymentId}`, "active")).appId}`;
  device = `/devices/${rig.device.deviceId}`;
});
afterAll(async () => {
  await rig?.stop();
});

const SIZES = [
  [1_440, 900],
  [1_024, 768],
  [390, 844],
  [320, 640],
] as const;

describe.each(SIZES)("at %i px", (width, height) => {
  test("no menu and no dialog has a finding", { timeout: 120_000 }, async () => {
    const { page, problems, signIn, go, close } = await chromium.visitor({ viewport: { width, height } });
    await signIn(rig.tenant.ownerId, { path: device });
    const found: string[] = [];
    const look = async (what: string): Promise<void> => {
      for (const finding of await findings({ page })) found.push(`${what}: ${finding}`);
      await page.keyboard.press("Escape");
      await eventually(async () => expect(await page.locator("dialog[open], [popover]:popover-open").count()).toBe(0));
    };
    const press = (name: string | RegExp): Promise<void> => page.getByRole("button", { name }).first().click();
    await page.getByText("store", { exact: true }).waitFor();
    for (const [name, item] of [
      ["Add", "Invite a person"],
      [/switch tenant$/i, "New tenant"],
      ["More actions", "Begin maintenance"],
    ] as const) {
      await press(name);
      await page.getByRole("menuitem", { name: item }).waitFor();
      await look(`the menu ${name}`);
    }
    await press("Send a command");
    await page.getByRole("dialog").getByLabel("Type").fill("reboot");
    await page.getByRole("dialog").getByRole("checkbox").waitFor();
    await look("a command");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Place, device or id" }).fill("store");
    await look("Go to");
    await go(app);
    await press("More actions");
    await page.getByRole("menuitem", { name: "Remove the app" }).click();
    await page.getByRole("dialog").waitFor();
    await look("the removal of an app");
    await go("/keys");
    await press("Create a key");
    await page.getByRole("dialog").getByLabel("Name").fill("W".repeat(100));
    await look("a new key");
    expect(found).toEqual([]);
    expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
    await close();
  });
});

test("a menu opens, is walked through and closes where the browser has no popovers", async () => {
  const { page, context, problems, signIn, close } = await chromium.visitor();
  await context.addInitScript("for (const name of ['showPopover', 'hidePopover', 'togglePopover', 'popover']) delete HTMLElement.prototype[name];");
  await signIn(rig.tenant.ownerId, { path: device });
  const button = page.getByRole("button", { name: "More actions" });
  await button.waitFor();
  expect(await page.getByRole("menu").count()).toBe(0);
  await page.keyboard.press(".");
  await eventually(async () => expect(await focused({ page })).not.toBe("More actions"));
  await page.getByRole("menuitem", { name: "Begin maintenance" }).waitFor();
  const [menu, opener] = [await page.getByRole("menu").boundingBox(), await button.boundingBox()];
  expect([(menu?.y ?? 0) > (opener?.y ?? 0), (menu?.x ?? 0) + (menu?.width ?? 0) <= 1_440]).toEqual([true, true]);
  // What the menu covers is out of reach while it is open.
  expect((await layoutFindings(page)).filter((finding) => !finding.includes("covered by div 'Send a ping"))).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "hidden" });
  expect(await focused({ page })).toBe("More actions");
  await button.click();
  await page.getByRole("heading", { level: 1 }).click();
  await page.getByRole("menu").waitFor({ state: "hidden" });
  await button.click();
  await page.getByRole("menuitem", { name: "Begin maintenance" }).click();
  await page.getByText("In maintenance", { exact: true }).waitFor();
  await page.getByRole("menu").waitFor({ state: "hidden" });
  expect(problems).toEqual([]);
  await close();
});
