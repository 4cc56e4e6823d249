// The console's tasks in Firefox, as Debian ships it; all other tests of the console use Chromium.
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { openRig, type Rig } from "../../features/apps/kit.ts";
import { openConsoleGateway } from "../../kit/browser/console.ts";
import { openFirefox } from "../../kit/browser/firefox.ts";
import { layoutFindings } from "../../kit/browser/layout.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { handlersOf, startAgent } from "../../kit/gateway/agents.ts";
import { createLogger, line } from "../../portal/workloads/logger.ts";

const world = await openConsoleGateway();
const firefox = await openFirefox(world);
const logger = createLogger(world, [line("listening")]);
let rig: Rig;
let appId: string;
/** A machine that runs an app, and one that went offline. */
beforeAll(async () => {
  rig = await openRig(world, { handlers: (device) => ({ ...handlersOf(), ...logger.handlers(device) }) });
  await rig.ask(`PATCH /devices/${rig.device.deviceId}`, { name: "nas" });
  await rig.ask("PUT /agent/inventory", { arch: "x64", runtimes: ["compose"], hardware: { memoryBytes: 4e9, diskBytes: 4e12 } }, rig.device.as);
  const { deploymentId } = await rig.deploy({ name: "store" });
  appId = (await rig.until(`/deployments/${deploymentId}`, "active")).appId;
  const gone = await rig.tenant.device();
  await rig.ask(`PATCH /devices/${gone.deviceId}`, { name: "attic" });
  await (await startAgent(world.url, gone)).stop();
});
afterAll(async () => {
  await firefox.close();
  await rig?.stop();
});

const visit = async (path: string) => {
  const visitor = await firefox.visitor();
  await visitor.signIn(rig.tenant.ownerId, { path });
  const { page } = visitor;
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  return { ...visitor, dialog: page.getByRole("dialog"), ping: page.getByRole("region", { name: "ping", exact: true }) };
};

test("what goes wrong on a page is noticed", async () => {
  const { page, problems, close } = await visit("/");
  await page.evaluate("new Image().src = 'data:,x'; console.error('wrong'); setTimeout(() => missing());");
  await eventually(() => expect(new Set(problems.map(({ kind }) => kind))).toEqual(new Set(["policy", "console", "error"])));
  await close();
});

test("the overview says what needs attention, and no place reaches beyond the window", async () => {
  const { page, problems, go, close } = await visit("/");
  await page
    .getByRole("region", { name: "Needs attention" })
    .getByText(/attic has been offline for/)
    .waitFor();
  const found: string[] = [];
  for (const path of ["/", "/devices", `/devices/${rig.device.deviceId}`, "/apps", `/apps/${appId}`, "/catalogue", "/commands", "/alerts", "/events"]) {
    await go(path);
    await page.locator("[data-skeleton]").first().waitFor({ state: "detached" });
    for (const [width, height] of [
      [390, 844],
      [1_440, 900],
    ] as const) {
      await page.setViewportSize({ width, height });
      found.push(...(await layoutFindings(page)).map((finding) => `${path} at ${width} px: ${finding}`));
    }
  }
  expect(found).toEqual([]);
  expect(problems).toEqual([]);
  await close();
});

test("a menu at the edge stays within the window, and closes with Esc", async () => {
  const { page, problems, close } = await visit(`/devices/${rig.device.deviceId}`);
  const [button, menu] = [page.getByRole("button", { name: "More actions" }), page.getByRole("menu")];
  for (const width of [1_440, 390]) {
    await page.setViewportSize({ width, height: 844 });
    await button.click();
    await menu.getByRole("menuitem", { name: "Begin maintenance" }).waitFor();
    const [opener, box] = [await button.boundingBox(), await menu.boundingBox()];
    if (opener === null || box === null) throw new Error("the menu is not there");
    expect(opener.x).toBeGreaterThan(width * 0.7);
    expect([box.x >= 0, box.x + box.width <= width, box.y >= opener.y + opener.height]).toEqual([true, true, true]);
    expect(await layoutFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await menu.waitFor({ state: "hidden" });
    await button.and(page.locator(":focus")).waitFor();
  }
  expect(problems).toEqual([]);
  await close();
});

test("an app is chosen and its form filled, a device is pinged, and an app's log is read", async () => {
  const { page, problems, go, dialog, ping, close } = await visit("/catalogue");
  await page.getByRole("button", { name: "Install n8n" }).click();
  await dialog.getByRole("radio", { name: "nas" }).check();
  expect(await dialog.getByRole("button", { name: "Install" }).isEnabled()).toBe(true);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });

  await go(`/devices/${rig.device.deviceId}`);
  await page.getByRole("button", { name: "Send a command" }).click();
  await dialog.getByLabel("Type").fill("ping");
  await dialog.getByRole("button", { name: "Send", exact: true }).click();
  await ping.getByText("succeeded", { exact: true }).first().waitFor();

  await go(`/apps/${appId}?tab=logs`);
  const lines = page.getByRole("region", { name: "Lines of the log" });
  await lines.getByText("listening").waitFor();
  await logger.write(line("GET /first 200"));
  await lines.getByText("GET /first 200").waitFor();
  expect(problems).toEqual([]);
  await close();
});

test("a tenant is switched, and the page stays at its place", async () => {
  const [mine, other] = [await world.tenant(), await world.tenant()];
  const membership = [newId("mem"), other.tenantId, mine.ownerId];
  await world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'owner')", membership);
  const nameOf = async (of: typeof mine): Promise<string> => (await world.call(await of.user(), "GET", `/v1/tenants/${of.tenantId}`)).body.data.name;
  const [here, there] = [await nameOf(mine), await nameOf(other)];
  const { page, problems, signIn, close } = await firefox.visitor();
  await signIn(mine.ownerId, { path: "/commands" });
  await page.getByRole("region", { name: "Your tenants" }).getByRole("button", { name: here, exact: true }).click();
  const button = page.getByRole("button", { name: /Switch tenant$/ });
  await button.click();
  await page.getByRole("menuitemradio", { name: there }).click();
  await eventually(async () => expect(await button.textContent()).toContain(there));
  expect(new URL(page.url()).pathname).toBe("/commands");
  expect(problems).toEqual([]);
  await close();
});

test("a device is found and pinged by keys alone", async () => {
  const { page, problems, ping, close } = await visit("/");
  const { keyboard } = page;
  await keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Place, device or id" }).waitFor();
  await keyboard.type("nas");
  await page.getByRole("option", { name: /nas/ }).first().waitFor();
  await keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "nas" }).waitFor();
  await keyboard.press("c");
  await page.getByRole("dialog").waitFor();
  await keyboard.type("ping");
  await keyboard.press("Enter");
  await ping.getByText("succeeded", { exact: true }).first().waitFor();
  expect(problems).toEqual([]);
  await close();
});
