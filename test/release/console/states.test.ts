// What a list or a panel says when it has nothing to show: being read, failed, emptied by filters, not permitted.
import { beforeAll, expect, test } from "vitest";
import { findingsInEveryLook } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import type { TestTenant } from "../../kit/gateway/world.ts";

const LIST = /\/trpc\/[^?]*devices\.list/;

const { world, chromium } = await openConsole();
let tenant: TestTenant;
beforeAll(async () => {
  tenant = await world.tenant();
  await world.call(await tenant.user(), "POST", "/v1/devices/provision", { body: { count: 3, tags: ["porto"], platform: "linux" } });
});

test("a read that does not end says so after a while, and one that fails says when it tries again, and does", async () => {
  const { page, problems, signIn, close } = await chromium.visitor();
  await page.clock.install();
  let isGone = true;
  await page.route(LIST, (route) => (isGone ? undefined : route.continue()));
  await signIn(tenant.ownerId, { path: "/devices" });
  await page.getByRole("heading", { name: "Devices" }).waitFor();
  await page.locator("[data-skeleton]").first().waitFor({ state: "attached" });
  await page.clock.runFor(9_000);
  await page.getByText("This takes longer than usual.").waitFor();
  isGone = false;
  await page.unroute(LIST);
  await page.reload({ waitUntil: "domcontentloaded" });
  await page.getByText("3 devices").waitFor();
  expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await close();
});

test("a list that cannot be read says why, and is there again by itself", async () => {
  const { page, problems, signIn, close } = await chromium.visitor();
  await page.route(LIST, (route) => route.abort());
  await signIn(tenant.ownerId, { path: "/devices" });
  await page.getByText(/^Tries again in \d+ s\.$/).waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.unroute(LIST);
  await page.getByText("3 devices").waitFor({ timeout: 20_000 });
  expect(await page.getByText(/^Tries again/).count()).toBe(0);
  expect(problems.filter(({ kind }) => kind === "error" || kind === "policy")).toEqual([]);
  await close();
});

test("a list without a match names the filter that leaves nothing, and removes it", async () => {
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/devices?tag=porto&agentVersion=9.9.9" });
  await page.getByText("version:9.9.9 leaves none of 3.").waitFor();
  expect(await page.getByRole("button", { name: "Remove tag:porto", exact: true }).count()).toBe(0);
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("button", { name: "Remove version:9.9.9", exact: true }).click();
  await page.getByText("3 devices").waitFor();
  expect(problems).toEqual([]);
  await close();
});

test("a place that the role does not show names the permission and who can give it", async () => {
  await tenant.token("viewer");
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId.replace("owner", "viewer"), { path: "/keys" });
  await page.getByText("Your role “viewer” does not see API keys").waitFor();
  await page.getByText("api_key:read").waitFor();
  await page.getByText(/can change your role\.$/).waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  expect(problems).toEqual([]);
  await close();
});
