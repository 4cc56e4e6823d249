// The daily tasks from the overview: each takes no more clicks than it was designed to, on a small and on a large fleet, and the long one works by keyboard alone.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { newApp } from "../contract/samples/apps.ts";
import { newRollout } from "../contract/samples/rollouts.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { startAgent } from "../kit/gateway/agents.ts";
import type { TestTenant } from "../kit/gateway/world.ts";

const { world, chromium } = await openConsole();
const OFFLINE = 38;

const open = async (userId: string, path = "/") => {
  const visitor = await chromium.visitor();
  await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await visitor.signIn(userId, { path });
  await visitor.page.getByRole("status").getByText("live", { exact: true }).waitFor();
  await countClicks(visitor.page);
  return visitor;
};
const countClicks = (page: Page) => page.evaluate("window.clicks = 0; document.addEventListener('click', () => { window.clicks += 1; }, true)");
const clicksOf = (page: Page) => page.evaluate<number>("window.clicks");

/** A site of devices that went offline together, among others that did not. */
const siteOffline = async (tenant: TestTenant): Promise<void> => {
  for (const [tag, status, count] of [
    ["site:porto", "offline", OFFLINE],
    ["site:oslo", "online", 3],
  ] as const) {
    const made = await world.call(await tenant.user(), "POST", "/v1/devices/provision", { body: { count, tags: [tag] } });
    expect(made.status).toBe(201);
    await world.sql.query(
      `with d as (update devices set status = $2 where tenant_id = $1 and $3 = any(tags) returning device_id)
       update device_presence p set last_seen_at = now() - interval '10 minutes', offline_after = now() + interval '1 hour' from d where d.device_id = p.device_id`,
      [tenant.tenantId, status, tag],
    );
  }
};
const tagged = async ({ tenantId }: TestTenant, tag: string): Promise<number> =>
  (await world.sql.query("select count(*)::int as n from devices where tenant_id = $1 and $2 = any(tags)", [tenantId, tag])).rows[0].n;

/** Presses Tab until the focus is on what has this name. */
const walkTo = async (page: Page, name: RegExp): Promise<void> => {
  for (let step = 0; step < 80; step += 1) {
    await page.keyboard.press("Tab");
    const shown = await page.evaluate<string>("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent");
    if (name.test(shown)) return;
  }
  throw new Error(`Tab never came to ${name}`);
};

describe.concurrent("from the overview", () => {
  test("a device's apps, a ping to it and the command that pairs another are one, three and two clicks away", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    await world.call(await tenant.user(), "PATCH", `/v1/devices/${device.deviceId}`, { body: { name: "nas" } });
    await newApp({ world, tenant, device }, { deviceId: device.deviceId });
    const agent = await startAgent(world.url, device);
    const { page, problems, close } = await open(tenant.ownerId);
    await page.getByRole("region", { name: "Devices", exact: true }).getByRole("link", { name: "nas" }).click();
    await page.getByRole("link", { name: "sample" }).first().waitFor();
    expect(await clicksOf(page)).toBe(1);
    await page.getByRole("button", { name: "Send a command" }).click();
    await page.getByRole("dialog").getByLabel("Type").fill("ping");
    await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("succeeded").first().waitFor();
    expect(await clicksOf(page)).toBe(3);
    await page.keyboard.press("g");
    await page.keyboard.press("o");
    await page.getByRole("link", { name: "Pair a device", exact: true }).click();
    await page.getByRole("button", { name: "Copy the command" }).click();
    await eventually(async () => expect(await page.evaluate<string>("navigator.clipboard.readText()")).toContain("install.sh"));
    expect(await clicksOf(page)).toBe(5);
    expect(problems).toEqual([]);
    await agent.stop();
    await close();
  });

  test("another tenant is two clicks away, and its page is the same place", async () => {
    const [first, second] = [await world.tenant(), await world.tenant()];
    const member = [newId("mem"), second.tenantId, first.ownerId];
    await world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'owner')", member);
    const nameOf = async (of: TestTenant): Promise<string> => (await world.call(await of.user(), "GET", `/v1/tenants/${of.tenantId}`)).body.data.name;
    const [here, there] = [await nameOf(first), await nameOf(second)];
    const visitor = await chromium.visitor();
    const { page, close } = visitor;
    await visitor.signIn(first.ownerId, { path: "/apps" });
    await page.getByRole("region", { name: "Your tenants" }).getByRole("button", { name: here, exact: true }).click();
    await page.getByRole("button", { name: new RegExp(`^${here} .*Switch tenant$`) }).waitFor();
    await visitor.go("/apps");
    await countClicks(page);
    await page.getByRole("heading", { name: "Apps" }).waitFor();
    await page.getByRole("button", { name: /Switch tenant$/ }).click();
    await page.getByRole("menuitemradio", { name: there }).click();
    await page.getByRole("button", { name: new RegExp(`^${there} .*Switch tenant$`) }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/apps");
    await page.getByRole("heading", { name: "Apps" }).waitFor();
    await close();
  });

  test("why a rollout stopped is one click away", async () => {
    const tenant = await world.tenant();
    const rolloutId = await newRollout({ world, tenant, device: await tenant.device() }, { status: "paused" });
    await world.sql.query("update rollouts set status_reason = 'THRESHOLD_EXCEEDED' where rollout_id = $1", [rolloutId]);
    const { page, close } = await open(tenant.ownerId);
    await page.getByRole("link", { name: "Review: sample" }).click();
    await page.getByText("Too many devices failed.").first().waitFor();
    expect(await clicksOf(page)).toBe(1);
    await close();
  });

  test("the devices of a site that went offline are tagged by keyboard alone", async () => {
    const tenant = await world.tenant();
    await siteOffline(tenant);
    const { page, close } = await open(tenant.ownerId);
    await page.getByRole("link", { name: `Show ${OFFLINE}: site:porto` }).waitFor();
    await walkTo(page, /^Show 38/);
    await page.keyboard.press("Enter");
    await page.getByText(`${OFFLINE} devices`, { exact: true }).waitFor();
    await walkTo(page, /^Select /);
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Tag…" }).waitFor();
    await walkTo(page, /^Tag…$/);
    await page.keyboard.press("Enter");
    await page.getByRole("combobox", { name: "Add" }).waitFor();
    await page.keyboard.type("look");
    await walkTo(page, /^Change tags$/);
    await page.keyboard.press("Enter");
    await eventually(async () => expect(await tagged(tenant, "look")).toBe(OFFLINE));
    expect(await clicksOf(page)).toBeLessThanOrEqual(4);
    await close();
  });
});
