// Every place of the console, in light and dark, wide and on a phone: nothing to complain of for axe, for the policy, on the console or sideways.
import { afterAll, beforeAll, expect, test } from "vitest";
import { findingsInEveryLook } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { HOSTILE_NAME, type Populated, populate } from "../../kit/gateway/populated.ts";
import type { TestTenant } from "../../kit/gateway/world.ts";

// Not by name: the console is compiled with the browser's types, the tests are not.
const { PLACES }: { readonly PLACES: readonly { readonly to: string; readonly needs?: string; readonly key?: string }[] } = await import(
  new URL("../../../portal/src/app/places.ts", import.meta.url).href
);

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let populated: Populated;
beforeAll(async () => {
  tenant = await world.tenant();
  populated = await populate(world, tenant, { devices: 8 });
}, 120_000);
afterAll(async () => {
  await populated?.stop();
});

/**
 * Beside the places: what is open in them, as far as no file of a screen looks at it in every look. Two of one screen are not neighbors: until it has read
 * the second, it may still show the first.
 */
const opened = (): readonly string[] => [
  `/devices/${populated.deviceIds[0]}`,
  `/fleets/${populated.fleetId}`,
  `/devices/${populated.deviceIds[3]}?tab=metrics`,
  "/devices?q=nothing-has-this-name",
  "/devices/dev_unknown",
  "/catalogue/unknown",
  "/apps/app_unknown",
  "/deployments/dep_unknown",
  "/invite?token=unknown",
];

test("every place is without a finding in every look", { timeout: 240_000 }, async () => {
  const { page, problems, signIn, go, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/account" });
  const findings: string[] = [];
  for (const path of [...PLACES.filter(({ needs }) => needs !== "administrator").map(({ to }) => to), ...opened()]) {
    await go(path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    for (const finding of await findingsInEveryLook(page)) findings.push(`${path}: ${finding}`);
  }
  expect(findings).toEqual([]);
  // The unknown ids are answered with 404.
  expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await close();
});

test("a name that wants to be HTML is text wherever it stands", async () => {
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/devices?sort=name" });
  await page.getByText(HOSTILE_NAME).first().waitFor();
  await page.getByText(HOSTILE_NAME).first().click();
  await page.getByRole("heading", { name: HOSTILE_NAME }).waitFor();
  await page.getByText("echo").first().click();
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Overview" }).click();
  await page.getByText(HOSTILE_NAME).first().waitFor();
  expect(await page.evaluate("document.querySelectorAll('img').length")).toBe(0);
  expect(problems).toEqual([]);
  await close();
});

test("another tenant's ids are unknown", async () => {
  const stranger = await world.tenant();
  const { page, problems, signIn, go, close } = await chromium.visitor();
  await signIn(stranger.ownerId, { path: "/devices" });
  const { deviceId, commandId } = populated.waiting;
  for (const path of [
    `/devices/${deviceId}`,
    `/commands?command=${commandId}`,
    `/fleets/${populated.fleetId}`,
    `/webhooks/${populated.webhookId}`,
    `/traces/${populated.traceId}`,
  ]) {
    await go(path);
    await page.getByText("Unknown, or not yours.").first().waitFor();
  }
  expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await close();
});

test("each key leads to one place", () => {
  const keys = PLACES.flatMap(({ key }) => key ?? []);
  expect(keys).toEqual([...new Set(keys)]);
});
