// The rail: its places in groups, the tabs that share one, and icons.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { openConsole } from "../../kit/browser/console.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { findings, openFrame, railOf } from "./stage.ts";

interface Entry {
  readonly to: string;
  readonly word: string;
  readonly tabs: readonly { readonly word: string }[];
}
// Not by name: the console is compiled with the browser's types, the tests are not.
const SOURCES = new URL("../../../portal/src/", import.meta.url);
const { entriesFor }: { entriesFor(visitor: { readonly administrator: boolean; readonly permissions: readonly string[] }): readonly Entry[] } = await import(
  new URL("app/places.ts", SOURCES).href
);
const { ICONS, PAGE_ICONS }: { readonly [name in "ICONS" | "PAGE_ICONS"]: Readonly<Record<string, string>> } = await import(
  new URL("ui/icon-names.ts", SOURCES).href
);

const { world, chromium } = await openConsole();
const tenant = await world.tenant();
const open = openFrame(chromium, tenant.ownerId);

describe("the rail", () => {
  test("has the places in their groups and no place that does not exist yet", async () => {
    const visitor = await open("/devices");
    const rail = railOf(visitor);
    expect(await rail.getByRole("link").allInnerTexts()).toEqual([
      "Overview",
      "Devices",
      "Apps",
      "Catalogue",
      "Rollouts",
      "Commands",
      "Backups",
      "Network",
      "Alerts",
      "Activity",
      "Cost",
      "Settings",
    ]);
    for (const group of ["Run", "Change", "Data and network", "Watch"]) expect(await rail.getByText(group, { exact: true }).count(), group).toBe(1);
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });

  test("leads to what a person may see of a place, and hides a place of which they may see nothing", () => {
    const seen = entriesFor({ administrator: false, permissions: ["trace:read", "member:read"] });
    expect(seen.map(({ word, to, tabs }) => [word, to, tabs.map((tab) => tab.word)])).toEqual([
      ["Activity", "/traces", ["Traces"]],
      ["Settings", "/members", ["People"]],
      ["Account", "/account", ["Account"]],
    ]);
  });

  test("marks the place of each of its tabs", async () => {
    const visitor = await open("/events");
    const { page } = visitor;
    await page.getByRole("navigation", { name: "Activity" }).getByRole("link", { name: "Audit log" }).click();
    await page.getByRole("heading", { name: "Audit log" }).waitFor();
    expect(await railOf(visitor).locator("[aria-current=page]").allInnerTexts()).toEqual(["Activity"]);
    await page.keyboard.press("Alt+3");
    await page.getByRole("heading", { name: "Traces" }).waitFor();
    await page.goto("/webhooks", { waitUntil: "domcontentloaded" });
    await page.getByRole("navigation", { name: "Settings" }).getByRole("link", { name: "People" }).click();
    await page.getByRole("heading", { name: "People" }).waitFor();
    expect(await railOf(visitor).locator("[aria-current=page]").allInnerTexts()).toEqual(["Settings"]);
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });

  test("shows icons only after [, also when the page comes again, and by itself in a narrow window", async () => {
    const visitor = await open("/devices");
    const { page } = visitor;
    const widthOf = async (): Promise<number> => (await railOf(visitor).boundingBox())?.width ?? 0;
    expect(await widthOf()).toBe(232);
    await page.keyboard.press("[");
    await eventually(async () => expect(await widthOf()).toBe(56));
    expect(await railOf(visitor).getByRole("link", { name: "Commands" }).getAttribute("title")).toBe("Commands");
    expect(await findings(visitor)).toEqual([]);
    await page.reload({ waitUntil: "domcontentloaded" });
    await eventually(async () => expect(await widthOf()).toBe(56));
    await page.keyboard.press("[");
    await eventually(async () => expect(await widthOf()).toBe(232));
    await page.setViewportSize({ width: 1_024, height: 768 });
    await eventually(async () => expect(await widthOf()).toBe(56));
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });
});

describe("icons", () => {
  test("are all drawn, from files that the gateway serves", async () => {
    const visitor = await open("/devices");
    const sizes = await visitor.page.evaluate<readonly number[]>("[...document.querySelectorAll('svg use')].map((use) => use.getBBox().width)");
    expect(sizes.length).toBeGreaterThan(10);
    expect(sizes.filter((size) => size === 0)).toEqual([]);
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });

  test.each([
    ["icons", ICONS],
    ["page-icons", PAGE_ICONS],
  ])("are in %s exactly as listed, and each is used", (file, icons) => {
    const folder = fileURLToPath(new URL("../../../dist/portal/assets/", import.meta.url));
    const built = readdirSync(folder).find((name) => new RegExp(`^${file}-[^-]*\\.svg$`).test(name)) ?? "";
    const drawn = [...readFileSync(`${folder}${built}`, "utf8").matchAll(/<symbol id="(\w+)"/g)].map(([, name]) => name);
    expect(drawn).toEqual(Object.keys(icons));
    const sources = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".tsx") || name.endsWith("places.ts"))
      .map((name) => readFileSync(new URL(name, SOURCES), "utf8"))
      .join("\n");
    expect(Object.keys(icons).filter((name) => !new RegExp(`(?:name=|icon=|icon: |[?:] )"${name}"`).test(sources))).toEqual([]);
  });
});
