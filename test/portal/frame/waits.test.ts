// What the page says while it has to wait, and when the gateway has changed under it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Chromium, openChromium } from "../../kit/browser/chromium.ts";
import { startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

// A gateway of its own: its limit of reads is low.
let world: World;
let chromium: Chromium;
let tenant: TestTenant;
beforeAll(async () => {
  world = await startWorld({ CONSOLE: "on", RATE_LIMIT_READS: "6" });
  chromium = await openChromium(world);
  tenant = await world.tenant({ unlimited: false });
});
afterAll(async () => {
  await chromium?.close();
  await world.close();
});

test("beyond the limit of reads the page says when it goes on", async () => {
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/devices" });
  for (const place of ["Commands", "Catalogue", "Alerts", "Activity", "Apps", "Settings", "Overview"])
    await page.getByRole("link", { name: place, exact: true }).click();
  await page
    .getByText(/^Rate limited, going on in \d+ s$/)
    .first()
    .waitFor();
  expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await close();
});

test("a page that a newer gateway serves offers to reload, and does not do it by itself", async () => {
  const visitor = await world.tenant();
  const { page, problems, signIn, close } = await chromium.visitor();
  let tag = '"first"';
  const isKnown = page.waitForResponse((response) => response.request().method() === "HEAD");
  await page.route(`${world.url}/`, (route) =>
    route.request().method() === "HEAD" ? route.fulfill({ status: 200, headers: { etag: tag } }) : route.continue(),
  );
  await signIn(visitor.ownerId, { path: "/account" });
  await isKnown;
  await page.getByRole("heading", { name: "Account" }).waitFor();
  expect(await page.getByRole("button", { name: "New version, reload" }).count()).toBe(0);
  tag = '"second"';
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await page.getByRole("button", { name: "New version, reload" }).click();
  await page.getByRole("heading", { name: "Account" }).waitFor();
  expect(problems.filter(({ kind }) => kind === "error" || kind === "policy")).toEqual([]);
  await close();
});
