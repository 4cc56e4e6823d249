// The frame on a phone: a bar on top, four places below, and the sheet with all others.
import { describe, expect, test } from "vitest";
import { openConsole } from "../../kit/browser/console.ts";
import { findings, focused, openFrame, PHONE, railOf } from "./stage.ts";

const { world, chromium } = await openConsole();
const tenant = await world.tenant();
const open = openFrame(chromium, tenant.ownerId);

describe("on a phone", () => {
  test("four places and all others are below, each 44 px high, and lead where they say", async () => {
    const visitor = await open("/devices", PHONE);
    const { page } = visitor;
    const bar = railOf(visitor);
    expect(await bar.getByRole("link").allInnerTexts()).toEqual(["Overview", "Devices", "Apps", "Alerts"]);
    for (const item of [...(await bar.getByRole("link").all()), bar.getByRole("button", { name: "More" })])
      expect((await item.boundingBox())?.height).toBeGreaterThanOrEqual(44);
    await bar.getByRole("link", { name: "Apps" }).click();
    await page.getByRole("heading", { name: "Apps", level: 1 }).waitFor();
    expect(await bar.locator("[aria-current=page]").allInnerTexts()).toEqual(["Apps"]);
    for (const name of [".*Switch tenant", "Go to…", "Add"]) {
      const box = await page.getByRole("button", { name: new RegExp(`^${name}$`) }).boundingBox();
      expect([name, Math.min(box?.width ?? 0, box?.height ?? 0) >= 32]).toEqual([name, true]);
    }
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });

  test.each([390, 320])("the sheet at %i px has every place of the rail, the search and the person", async (width) => {
    const visitor = await open("/commands", { viewport: { width, height: 700 } });
    const { page } = visitor;
    const more = railOf(visitor).getByRole("button", { name: "More" });
    await more.click();
    const sheet = page.getByRole("dialog", { name: "More" });
    for (const place of ["Overview", "Devices", "Apps", "Catalogue", "Commands", "Alerts", "Activity", "Settings"])
      expect((await sheet.getByRole("link", { name: place }).boundingBox())?.height, place).toBeGreaterThanOrEqual(44);
    expect(await findings(visitor)).toEqual([]);
    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });
    expect(await focused(visitor)).toBe("More");
    await more.click();
    await sheet.getByRole("link", { name: "Activity" }).click();
    await page.getByRole("heading", { name: "Events" }).waitFor();
    await sheet.waitFor({ state: "detached" });
    await more.click();
    await sheet.getByRole("button", { name: "Go to…" }).click();
    await page.getByRole("combobox", { name: "Place, device or id" }).fill("API k");
    await page.getByRole("option", { name: /^Settings: API keys/ }).click();
    await page.getByRole("heading", { name: "API keys" }).waitFor();
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });

  test("the settings are a list of its own, and each part leads back to it", async () => {
    const visitor = await open("/settings", PHONE);
    const { page } = visitor;
    const list = page.getByRole("navigation", { name: "Settings" });
    await list.getByRole("link", { name: "Webhooks" }).waitFor();
    for (const link of await list.getByRole("link").all()) expect((await link.boundingBox())?.height).toBeGreaterThanOrEqual(44);
    expect(await findings(visitor)).toEqual([]);
    await list.getByRole("link", { name: "General" }).click();
    await page.getByRole("heading", { name: "Tenant", exact: true }).waitFor();
    await page.getByRole("navigation", { name: "Settings" }).getByRole("link", { name: "Settings" }).click();
    await list.getByRole("link", { name: "People" }).click();
    await page.getByRole("heading", { name: "People" }).waitFor();
    await page.goBack();
    await list.getByRole("link", { name: "API keys" }).waitFor();
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });
});
