// The catalogue, as a person goes through it: what fits, where it is installed, and from a card to a running app in three clicks or by keys alone.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRig, type Rig } from "../../features/apps/kit.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { eventually } from "../../kit/checks/eventually.ts";

const { world, chromium } = await openConsole();
let rig: Rig;
/** A machine for everything, a small one, and one whose agent runs no containers. */
beforeAll(async () => {
  rig = await openRig(world);
  const describeAs = async (name: string, device: Rig["device"], report: object): Promise<void> => {
    await rig.ask(`PATCH /devices/${device.deviceId}`, { name });
    await rig.ask("PUT /agent/inventory", report, device.as);
  };
  await describeAs("nas", rig.device, { arch: "x64", runtimes: ["compose"], hardware: { memoryBytes: 4e9, diskBytes: 4e12 } });
  await describeAs("pi-attic", await rig.tenant.device(), { arch: "arm", runtimes: ["compose"], hardware: { memoryBytes: 0.95e9, diskBytes: 16e9 } });
  await describeAs("kiosk", await rig.tenant.device(), { arch: "arm64", runtimes: [], hardware: { memoryBytes: 2e9, diskBytes: 64e9 } });
  for (const appType of ["vaultwarden", "syncthing"]) await rig.ask("POST /apps", { appType, deviceId: rig.device.deviceId });
  await world.sql.query("update apps set template_version = '0.1.0' where tenant_id = $1 and app_type = 'vaultwarden'", [rig.tenant.tenantId]);
}, 60_000);
afterAll(async () => {
  await rig?.stop();
});

const visit = async (path: string, userId = rig.tenant.ownerId) => {
  const visitor = await chromium.visitor();
  await visitor.signIn(userId, { path });
  const { page } = visitor;
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  const card = (name: string) => page.getByRole("article").filter({ has: page.getByRole("heading", { name, exact: true }) });
  const names = () => page.getByRole("article").getByRole("heading").allInnerTexts();
  return { ...visitor, card, names, filter: page.getByRole("combobox", { name: "Filter applications" }), dialog: page.getByRole("dialog") };
};
/** Where the focus is. */
const focused = (page: Page): Promise<string> =>
  page.evaluate<string>("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent");

describe("a card of the catalogue", () => {
  test("says what the application needs, on which devices it runs, and where it is installed", async () => {
    const { page, card, names, problems, close } = await visit("/catalogue");
    await page.getByText(/^61 apps, \d+ fit your devices$/).waitFor();
    const installed: readonly string[] = (await rig.ask("GET /app-templates?pageSize=100")).flatMap(
      ({ name, installedCount }: { name: string; installedCount: number }) => (installedCount > 0 ? [name] : []),
    );
    expect(installed).toEqual(expect.arrayContaining(["Syncthing", "Vaultwarden"]));
    const inOrder = installed.toSorted((a, b) => a.localeCompare(b));
    expect((await names()).slice(0, installed.length + 1)).toEqual([...inOrder, "Actual Budget"]);
    await card("Vaultwarden").getByText("nas, update").waitFor();
    await card("Vaultwarden").getByText("runs on 2 of your 3").waitFor();
    expect(await card("Syncthing").getByText("nas", { exact: true }).count()).toBe(1);
    expect(await card("Vaultwarden").getByRole("button").count()).toBe(0);
    await card("Actual Budget").getByRole("button", { name: "Install Actual Budget" }).waitFor();
    await card("Immich").getByText("6 GB memory, 20 GB disk").waitFor();
    await card("Immich").getByText("runs on none of your 3: needs 6 GB of memory").waitFor();
    expect(await card("Immich").getByRole("button").count()).toBe(0);
    await card("Key-value store").getByText("runs on none of your 3: needs an agent that runs programs").waitFor();
    expect(await page.getByRole("article").getByRole("link").count()).toBe(61);
    await page.getByLabel("Order").selectOption("Name");
    await eventually(async () => expect((await names())[0]).toBe("Actual Budget"));
    expect(problems).toEqual([]);
    await close();
  });

  test("offers no installation to whoever may install nothing, and names the plan that an application needs", async () => {
    const viewer = await visit("/catalogue", (await rig.tenant.user("viewer")) && rig.tenant.userId("viewer"));
    await viewer.card("Audiobookshelf").getByText("runs on 1 of your 3").waitFor();
    expect(await viewer.page.getByRole("button", { name: /^Install / }).count()).toBe(0);
    await viewer.close();
    const small = await world.tenant();
    await world.sql.query("update tenants set plan = 'free', limit_overrides = '{}' where tenant_id = $1", [small.tenantId]);
    const seen = await visit("/catalogue?available=no", small.ownerId);
    await seen.card("Mattermost").getByText("needs pro").waitFor();
    await seen.card("Mattermost").getByRole("link").click();
    await seen.page.getByText("Your plan does not include it. It needs the plan pro.").waitFor();
    expect(await seen.page.getByRole("button", { name: "Install" }).count()).toBe(0);
    expect(seen.problems).toEqual([]);
    await seen.close();
  });
});

describe("the catalogue", () => {
  test("is filtered by words, category and what the own devices can run, and says which filter leaves nothing", async () => {
    const { page, card, names, filter, problems, close } = await visit("/catalogue");
    await card("Immich").waitFor();
    const all = await names();
    const chip = page.getByRole("navigation", { name: "Categories" }).getByRole("link");
    await chip.filter({ hasText: "Photos" }).click();
    await eventually(async () => expect(await names()).toEqual(["Immich", "PhotoPrism"]));
    expect(await chip.filter({ hasText: "Photos" }).innerText()).toMatch(/^Photos\s+2$/);
    await page.getByRole("button", { name: "Fits mine" }).click();
    await eventually(async () => expect(new URL(page.url()).search).toBe("?category=photos&fits=mine"));
    await eventually(async () => expect(await names()).toEqual(["PhotoPrism"]));
    await filter.fill("passwords");
    await page.getByText("No application matches these filters.").waitFor();
    await page.getByText("category:photos leaves none of 1.").waitFor();
    await page.getByText("passwords leaves none of 1.").waitFor();
    expect(await page.getByText("runs-on:mine leaves none").count()).toBe(0);
    await page.getByRole("button", { name: "Remove category:photos" }).click();
    await eventually(async () => expect(await names()).toEqual(["Vaultwarden"]));
    await filter.fill("");
    await eventually(async () => expect(new URL(page.url()).search).toBe("?fits=mine"));
    await page.getByRole("button", { name: "Fits mine" }).click();
    await eventually(async () => expect(await names()).toEqual(all));
    expect(problems).toEqual([]);
    await close();
  });

  test("leads from the overview to a running app in three clicks, where one device can run it", async () => {
    const { page, card, dialog, problems, close } = await visit("/");
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Catalogue" }).click();
    await card("n8n").getByRole("button").click();
    await dialog.getByText("needs amd64 or arm64; it is arm").waitFor();
    await dialog.getByText("needs Docker; its agent runs no containers").waitFor();
    expect(await dialog.getByRole("radio", { name: "nas" }).isChecked()).toBe(true);
    expect(await dialog.getByRole("radio").count()).toBe(3);
    await dialog.getByRole("button", { name: "Install" }).click();
    await page.getByRole("heading", { level: 1, name: "n8n" }).waitFor();
    await page.locator("header").getByText("healthy", { exact: true }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  test("is gone through by keys alone: arrows move between the cards, Enter opens one, and installs where one device can run it", async () => {
    const { page, card, dialog, problems, close } = await visit("/");
    const { keyboard } = page;
    await keyboard.press("g");
    await keyboard.press("i");
    await card("Audiobookshelf").waitFor();
    await keyboard.press("ArrowDown");
    const first = await focused(page);
    await keyboard.press("ArrowRight");
    await keyboard.press("ArrowRight");
    const third = await focused(page);
    expect(third).not.toBe(first);
    await keyboard.press("ArrowDown");
    expect(await focused(page)).not.toBe(third);
    await keyboard.press("ArrowUp");
    expect(await focused(page)).toBe(third);
    await keyboard.press("ArrowLeft");
    await keyboard.press("k");
    await keyboard.press("k");
    expect(await focused(page)).toBe(first);
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: first }).waitFor();
    await page.goBack();
    await card("Audiobookshelf").waitFor();
    for (let step = 0; step < 61 && (await focused(page)) !== "Audiobookshelf"; step += 1) await keyboard.press("ArrowRight");
    await keyboard.press("Tab");
    expect(await focused(page)).toBe("Install Audiobookshelf");
    await keyboard.press("Enter");
    await dialog.getByRole("radio", { name: "nas" }).waitFor();
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Audiobookshelf" }).waitFor();
    await page.locator("header").getByText("healthy", { exact: true }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});

test("among many devices one is searched, and the form says how many can run it", async () => {
  const { tenant } = await openRig(world, { online: false });
  await world.call(await tenant.user(), "POST", "/v1/devices/provision", { body: { count: 12 } });
  await world.sql.query(`update devices set name = 'till ' || right(device_id, 4), runtimes = '["process"]' where tenant_id = $1`, [tenant.tenantId]);
  const [{ name, device_id: deviceId }] = (await world.sql.query("select name, device_id from devices where tenant_id = $1 limit 1", [tenant.tenantId])).rows;
  await world.sql.query("update devices set runtimes = null where device_id = $1", [deviceId]);
  const { card, dialog, problems, close } = await visit("/catalogue?q=gitea", tenant.ownerId);
  await card("Gitea").getByRole("button").click();
  await dialog.getByText("runs on 1 of your 13. 12 devices have no agent that runs containers").waitFor();
  await dialog.getByText("offline; it is installed when the device connects").waitFor();
  await dialog.getByRole("list", { name: "Device: picked" }).getByText(name).waitFor();
  await dialog.getByRole("button", { name: `Remove ${name}` }).click();
  expect(await dialog.getByRole("button", { name: "Install" }).isDisabled()).toBe(true);
  expect(problems).toEqual([]);
  await close();
});
