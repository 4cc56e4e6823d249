// The menus of the frame: by keyboard, in every browser, and what the tenants' menu does.
import { describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { layoutFindings } from "../../kit/browser/layout.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { findings, focused, openFrame, PHONE } from "./stage.ts";

const { world, chromium } = await openConsole();
const tenant = await world.tenant();
const open = openFrame(chromium, tenant.ownerId);
const HOST = new URL(world.url).host;

describe("a menu", () => {
  test("is opened, walked through and left by keyboard, and gives the focus back", async () => {
    const visitor = await open("/devices");
    const { page } = visitor;
    await page.getByRole("button", { name: "Add", exact: true }).focus();
    await page.keyboard.press("Enter");
    await eventually(async () => expect(await focused(visitor)).toBe("Pair a device"));
    await page.keyboard.press("ArrowDown");
    expect(await focused(visitor)).toBe("Install an app");
    await page.keyboard.press("End");
    expect(await focused(visitor)).toBe("Invite a person");
    await page.keyboard.press("ArrowDown");
    expect(await focused(visitor)).toBe("Pair a device");
    expect(await findings(visitor)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("menu").waitFor({ state: "hidden" });
    expect(await focused(visitor)).toBe("Add");
    await page.keyboard.press("Enter");
    await eventually(async () => expect(await focused(visitor)).toBe("Pair a device"));
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "People" }).waitFor();
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });

  test("that is opened again at once begins at its first item again", async () => {
    const visitor = await open("/devices");
    const { page } = visitor;
    await page.getByRole("button", { name: "Add", exact: true }).press("Enter");
    await eventually(async () => expect(await focused(visitor)).toBe("Pair a device"));
    // The browser tells of both with one event: it is open, and was open.
    await page.evaluate("(() => { const menu = document.querySelector('[popover]:popover-open'); menu.hidePopover(); menu.showPopover(); })()");
    await eventually(async () => expect(await focused(visitor)).toBe("Pair a device"));
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });

  test("of the person has the colors, the keys and the way out", async () => {
    const visitor = await open("/account");
    const { page } = visitor;
    const button = page.getByRole("button", { name: /: account$/ });
    await button.click();
    expect(await findings(visitor)).toEqual([]);
    await page.getByRole("menuitemradio", { name: "Dark colors" }).click();
    expect(await page.evaluate("document.documentElement.dataset.scheme")).toBe("dark");
    await button.click();
    await page.getByRole("menuitem", { name: "Keys" }).click();
    await page.getByRole("dialog", { name: "Keys" }).getByText("Activity: Traces").waitFor();
    expect(await findings(visitor)).toEqual([]);
    await page.keyboard.press("Escape");
    await button.click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: /sign in/i }).waitFor();
    expect(visitor.problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
    await visitor.close();
  });

  test("stays within the window where the browser cannot place it by itself", async () => {
    const visitor = await chromium.visitor(PHONE);
    await visitor.context.addInitScript("CSS.supports = () => false;");
    await visitor.signIn(tenant.ownerId, { path: "/devices" });
    const { page } = visitor;
    await page.getByRole("button", { name: "Add", exact: true }).waitFor();
    await page.evaluate(
      "const sheet = new CSSStyleSheet(); sheet.replaceSync('[popover] { position-area: none !important }'); document.adoptedStyleSheets = [sheet];",
    );
    await page.getByRole("button", { name: "Add", exact: true }).click();
    const button = await page.getByRole("button", { name: "Add", exact: true }).boundingBox();
    const menu = await page.getByRole("menu").boundingBox();
    if (button === null || menu === null) throw new Error("the menu is not there");
    expect(menu.y).toBeGreaterThanOrEqual(button.y + button.height);
    expect(menu.y).toBeLessThan(button.y + button.height + 40);
    expect(menu.x + menu.width).toBeLessThanOrEqual(390);
    expect(await layoutFindings(page)).toEqual([]);
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });
});

describe("the menu of tenants", () => {
  test("finds one of many, and keeps the place when the tenant changes", { timeout: 60_000 }, async () => {
    const mine = await world.tenant();
    const others = await Promise.all(Array.from({ length: 8 }, () => world.tenant()));
    for (const other of others)
      await world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'owner')", [
        newId("mem"),
        other.tenantId,
        mine.ownerId,
      ]);
    const visitor = await chromium.visitor();
    const { page } = visitor;
    await visitor.signIn(mine.ownerId, { path: "/commands" });
    const nameOf = async (of: typeof mine): Promise<string> => (await world.call(await of.user(), "GET", `/v1/tenants/${of.tenantId}`)).body.data.name;
    const [first, last] = [await nameOf(mine), await nameOf(others[7] ?? mine)];
    await page.getByRole("region", { name: "Your tenants" }).getByRole("button", { name: first, exact: true }).click();
    await page.getByRole("button", { name: `${first} ${HOST} Switch tenant` }).click();
    await page.getByRole("textbox", { name: "Search tenants" }).fill(last);
    await eventually(async () => expect(await page.getByRole("menuitemradio").count()).toBe(1));
    expect(await findings(visitor)).toEqual([]);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: `${last} ${HOST} Switch tenant` }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/commands");
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });

  test("makes a new tenant and goes there", async () => {
    const visitor = await chromium.visitor();
    const { page } = visitor;
    const mine = await world.tenant();
    await visitor.signIn(mine.ownerId, { path: "/devices" });
    await page.getByRole("button", { name: /Switch tenant$/ }).click();
    await page.getByRole("menuitem", { name: "New tenant" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Second home");
    await page.getByLabel("Short name").fill(`second-${mine.tenantId.slice(-8).toLowerCase()}`);
    await page.getByRole("button", { name: "Create tenant" }).click();
    await page.getByRole("button", { name: `Second home ${HOST} Switch tenant` }).waitFor();
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });
});
