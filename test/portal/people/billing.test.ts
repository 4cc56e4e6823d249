// The screen of usage and billing: choosing a plan, leaving it, and what a suspended tenant sees.
import { expect, test } from "vitest";
import { accessFindings, type Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import type { TestTenant } from "../../kit/gateway/world.ts";

const { world, chromium } = await openConsole();

/** As if the installation took payments: the tests' gateway takes none. */
const withPayments = async ({ page }: Visitor): Promise<void> => {
  await page.route(/\/trpc\/[^?]*general\.info/, async (route) => {
    const response = await route.fetch().catch(() => null);
    const body = await response?.text().catch(() => undefined);
    // The page has ended meanwhile.
    if (response === null || body === undefined) return;
    await route.fulfill({ response, body: body.replace('"payments":"none"', '"payments":"stripe"') });
  });
};

/** An owner in front of the plan of a new tenant with one device. */
const open = async (): Promise<{ tenant: TestTenant; visitor: Visitor }> => {
  const tenant = await world.tenant();
  await world.sql.query("update tenants set limit_overrides = '{}' where tenant_id = $1", [tenant.tenantId]);
  await world.call(await tenant.user(), "POST", "/v1/devices/provision", { body: { count: 1 } });
  const visitor = await chromium.visitor();
  await withPayments(visitor);
  await visitor.signIn(tenant.ownerId, { path: "/billing" });
  return { tenant, visitor };
};

test("choosing a plan says what it costs, changes the plan and the limits at once, and leaves an invoice", async () => {
  const { visitor } = await open();
  const { page } = visitor;
  await page.getByText("1 of 5", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Choose Pro" }).click();
  await page
    .getByRole("dialog")
    .getByText(/^(US)?\$29$/)
    .waitFor();
  expect(await accessFindings(page)).toEqual([]);
  await page.getByRole("dialog").getByRole("button", { name: "Change to Pro" }).click();
  await page.getByText("1 of 25", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Plan", exact: true }).getByText("Pro", { exact: true }).waitFor();
  await page.getByRole("grid", { name: "Invoices" }).getByText("paid").waitFor();
  expect(await page.getByRole("button", { name: "Choose Pro" }).count()).toBe(0);
  expect(await accessFindings(page)).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test("a canceled subscription says when it ends, and can be kept after all", async () => {
  const { tenant, visitor } = await open();
  await world.call(await tenant.user(), "POST", "/v1/billing/checkout", { body: { plan: "team", interval: "annual" } });
  const { page } = visitor;
  await page.getByText("by the year", { exact: false }).first().waitFor();
  await page.getByRole("button", { name: "Cancel the subscription" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the subscription" }).click();
  await page.getByText("The subscription is canceled. The plan stays until").waitFor();
  await page.getByRole("button", { name: "Keep the subscription" }).click();
  await page.getByRole("button", { name: "Cancel the subscription" }).waitFor();
  expect(await page.getByText("The subscription is canceled").count()).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test("a plan that is too small cannot be chosen, and says of what there is too much", async () => {
  const { tenant, visitor } = await open();
  const owner = await tenant.user();
  await world.call(owner, "POST", "/v1/billing/checkout", { body: { plan: "pro" } });
  await world.call(owner, "POST", "/v1/devices/provision", { body: { count: 6 } });
  const { page } = visitor;
  await page.getByText("7 of 25", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Choose Starter" }).click();
  await page.getByText("Devices: you have 7, the plan allows 5.").waitFor();
  expect(await page.getByRole("dialog").getByRole("button", { name: "Change to Starter" }).isDisabled()).toBe(true);
  await visitor.close();
});

test("a tenant that is suspended says so without a reload", async () => {
  const { tenant, visitor } = await open();
  const { page } = visitor;
  await page.getByText("live", { exact: true }).waitFor();
  await world.call(await world.operator(), "POST", `/v1/admin/tenants/${tenant.tenantId}/suspend`, { body: { reason: "test" } });
  await page.getByText("The tenant is suspended: you can read, but not change anything.").waitFor();
  await visitor.close();
});

test("an administrator who is no owner sees the plans and no way to buy one", async () => {
  const { tenant, visitor: owner } = await open();
  await owner.close();
  await tenant.token("admin");
  const visitor = await chromium.visitor();
  await withPayments(visitor);
  await visitor.signIn(tenant.ownerId.replace("owner", "admin"), { path: "/billing" });
  await visitor.page.getByText("Only owners change the plan.").waitFor();
  await visitor.page.getByText("Business", { exact: true }).waitFor();
  expect(await visitor.page.getByRole("button", { name: /Choose|Cancel/ }).count()).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test("where nobody takes payments, only what is used stands beside its limit", async () => {
  const tenant = await world.tenant();
  const visitor = await chromium.visitor();
  const { page } = visitor;
  await visitor.signIn(tenant.ownerId, { path: "/billing" });
  await page.getByRole("heading", { name: "Usage and limits", level: 1 }).waitFor();
  await page.getByRole("region", { name: "Usage" }).getByText("Devices").first().waitFor();
  for (const name of ["Plan", "Plans", "Invoices"]) expect(await page.getByRole("region", { name, exact: true }).count(), name).toBe(0);
  expect(await page.getByRole("button", { name: /Choose|Cancel|Payment/ }).count()).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
