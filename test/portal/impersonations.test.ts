// Impersonations in the console: an administrator acts as a member in one tab, everybody sees it, and both sides end it.
import { beforeAll, expect, test } from "vitest";
import { accessFindings, findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { OPERATOR, type TestTenant } from "../kit/gateway/world.ts";

const { world, chromium } = await openConsole();
beforeAll(async () => {
  const home = await world.tenant();
  await world.app.mint({ userId: OPERATOR, tenantId: home.tenantId, role: "viewer", ttlSeconds: 600 });
});

const begin = async (tenant: TestTenant) => {
  const visitor = await chromium.visitor();
  const { page } = visitor;
  await visitor.signIn(OPERATOR, { path: "/nodes?tab=impersonations" });
  await page.getByRole("button", { name: "Act as a member" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("searchbox").fill(`t-${tenant.ownerId.slice(6)}`);
  await dialog.getByRole("option").first().waitFor({ state: "attached" });
  // Pairing the device made a second owner, and without a member the gateway takes either.
  await dialog.getByLabel("Member", { exact: true }).fill(tenant.ownerId);
  await dialog.getByLabel("Reason").fill("Ticket 4711");
  expect(await accessFindings(page)).toEqual([]);
  await dialog.getByLabel("Tenant", { exact: true }).selectOption({ value: tenant.tenantId });
  await dialog.getByRole("button", { name: "Begin" }).click();
  const words = `You act as ${tenant.ownerId}, with the role owner.`;
  // A failure shows what the page says instead.
  await eventually(async () => expect(await page.innerText("body")).toContain(words));
  await page.getByRole("region", { name: "Impersonation" }).getByText(words).waitFor();
  return visitor;
};

test("an administrator sees the member's console, whose every page says so, and comes back to the own session", async () => {
  const tenant = await world.tenant();
  const device = await tenant.device();
  const { page, problems, close } = await begin(tenant);
  await page.getByRole("region", { name: "Impersonation" }).getByText("You can change nothing.").waitFor();
  await page.goto(`${world.url}/devices/${device.deviceId}`);
  await page.getByRole("region", { name: "Impersonation" }).waitFor();
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  expect(await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Platform" }).count()).toBe(0);
  expect(await findingsInEveryLook(page)).toEqual([]);
  expect(problems).toEqual([]);
  await page.getByRole("region", { name: "Impersonation" }).getByRole("button", { name: "Stop" }).click();
  await page.getByRole("row").filter({ hasText: tenant.ownerId }).getByText("ended").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  // A call that the page sends while it stops is refused.
  expect(problems.filter(({ kind, text }) => kind !== "answer" || !text.includes("a status of 401 (Unauthorized)"))).toEqual([]);
  await close();
});

test("the tenant's owner sees who acts as whom and why, and puts the administrator out", async () => {
  const tenant = await world.tenant();
  const administrator = await begin(tenant);
  const owner = await chromium.visitor();
  await owner.signIn(tenant.ownerId, { path: "/members" });
  const notice = owner.page.getByText(`${OPERATOR}, an administrator of the installation, acts as ${tenant.ownerId}.`);
  await notice.waitFor();
  await owner.page.getByText("Ticket 4711").waitFor();
  expect(await findingsInEveryLook(owner.page)).toEqual([]);
  await owner.page.getByRole("button", { name: "Put out" }).click();
  await notice.waitFor({ state: "detached" });
  // The other's next call, at the latest that of the live view, finds out.
  await administrator.page.waitForURL("**/nodes?tab=impersonations");
  await administrator.page.getByRole("row").filter({ hasText: tenant.ownerId }).getByText("ended").waitFor();
  expect(owner.problems).toEqual([]);
  await Promise.all([administrator.close(), owner.close()]);
});
