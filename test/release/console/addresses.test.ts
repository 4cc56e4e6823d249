// Addresses that stand in people's bookmarks and in messages since the first console: each leads to what it showed.
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRig, type Rig } from "../../features/apps/kit.ts";
import { openConsole } from "../../kit/browser/console.ts";

const { world, chromium } = await openConsole();
let rig: Rig;
let ids: { readonly app: string; readonly deployment: string; readonly device: string; readonly command: string; readonly fleet: string };
beforeAll(async () => {
  rig = await openRig(world);
  const { deploymentId } = await rig.deploy({ name: "store" });
  const { appId } = await rig.until(`/deployments/${deploymentId}`, "active");
  const { deviceId } = rig.device;
  await rig.ask(`PATCH /devices/${deviceId}`, { name: "attic" });
  const { fleetId } = await rig.ask("POST /fleets", { name: "Roof", deviceIds: [deviceId] });
  const { id } = await rig.ask(`POST /devices/${deviceId}/commands`, { type: "ping" });
  ids = { app: appId, deployment: deploymentId, device: deviceId, command: id, fleet: fleetId };
});
afterAll(async () => {
  await rig?.stop();
});

/** The address, and what one reads there at the top. */
const addresses = (): readonly (readonly [address: string, heading: string, path?: string])[] => [
  ["/", "Overview"],
  ["/devices", "Devices"],
  ["/devices?q=attic&status=online&sort=name", "Devices"],
  [`/devices/${ids.device}`, "attic"],
  [`/devices/${ids.device}?command=${ids.command}`, "attic"],
  [`/devices/${ids.device}?tab=metrics`, "attic"],
  [`/devices/${ids.device}?tab=apps`, "attic"],
  ["/fleets", "Fleets"],
  [`/fleets/${ids.fleet}`, "Roof"],
  ["/pair", "Pair"],
  ["/pair?tab=tokens", "Pair"],
  ["/apps", "Apps"],
  ["/apps?status=error", "Apps"],
  [`/apps/${ids.app}`, "store"],
  [`/apps/${ids.app}?tab=logs`, "store"],
  [`/apps/${ids.app}?tab=steps`, "store"],
  ["/deployments", "Deployments"],
  ["/deployments?status=failed", "Deployments"],
  [`/deployments/${ids.deployment}`, "store", `/apps/${ids.app}?tab=history`],
  [`/deployments/${ids.deployment}?tab=logs`, "store", `/apps/${ids.app}?tab=logs`],
  ["/catalogue", "Catalogue"],
  ["/catalogue/key-value", "Key-value store"],
  ["/commands", "Commands"],
  [`/commands?command=${ids.command}`, "Commands"],
  ["/members", "People"],
  ["/members?tab=invites", "People"],
  ["/members?tab=roles", "People"],
  ["/invite?token=x", "Invite"],
  ["/keys", "API keys"],
  ["/audit", "Audit log"],
  ["/billing", "Usage and limits"],
  ["/settings", "Settings"],
  ["/account", "Account"],
  ["/alerts", "Alerts"],
  ["/alerts?tab=rules", "Alerts"],
  ["/alerts/alt_unknown", "Alerts", "/alerts?open=alt_unknown"],
  ["/events", "Events"],
  ["/webhooks", "Webhooks"],
  ["/traces", "Traces"],
  ["/security", "Security"],
];

test("every address of the first console leads to its page, also those of pages that are merged", { timeout: 120_000 }, async () => {
  const { page, problems, signIn, go, close } = await chromium.visitor();
  await signIn(rig.tenant.ownerId, { path: "/account" });
  await page.getByRole("heading", { level: 1, name: "Account" }).waitFor();
  const wrong: string[] = [];
  for (const [address, heading, path = address.replace(/\?.*/, "")] of addresses()) {
    await go(address);
    await page
      .getByRole("heading", { level: 1, name: heading })
      .first()
      .waitFor({ timeout: 20_000 })
      .catch(async () => {
        wrong.push(`${address} shows ${await page.getByRole("heading", { level: 1 }).allInnerTexts()}, not ${heading}`);
      });
    const { pathname, search } = new URL(page.url());
    if (!`${pathname}${search}`.startsWith(path)) wrong.push(`${address} ends at ${pathname}${search}, not at ${path}`);
  }
  expect(wrong).toEqual([]);
  expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await go("/nowhere");
  await page.getByRole("heading", { level: 1, name: "Unknown page" }).waitFor();
  await close();
});
