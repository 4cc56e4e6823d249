// Bulk jobs: many selected devices are changed by one, and its page shows what became of each.
import { expect, test } from "vitest";
import { findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";

const DEVICES = 120;
const { world, chromium } = await openConsole();

test("all devices that match are tagged by a job that goes on without the page, and each has its result", async () => {
  const tenant = await world.tenant();
  const owner = await tenant.user();
  await world.call(owner, "POST", "/v1/devices/provision", { body: { count: DEVICES, tags: ["hall:1"] } });
  const visitor = await chromium.visitor();
  const { page } = visitor;
  await visitor.signIn(tenant.ownerId, { path: "/devices" });
  await page.getByRole("checkbox", { name: "Select the first 100 or none" }).click();
  await page.getByRole("button", { name: `Select all ${DEVICES} that match` }).click();
  await page.getByRole("button", { name: "Tag…" }).click();
  await page.getByRole("combobox", { name: "Add" }).fill("kiosk");
  await page.getByRole("button", { name: "Change tags" }).click();
  await page.getByRole("heading", { name: "Tags" }).waitFor();
  await page.getByText("completed", { exact: true }).first().waitFor();
  const { rows } = await world.sql.query("select count(*)::int as n from devices where tenant_id = $1 and 'kiosk' = any(tags)", [tenant.tenantId]);
  expect(rows[0].n).toBe(DEVICES);
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("link", { name: "Bulk jobs" }).first().click();
  await page.getByRole("grid", { name: "Bulk jobs" }).getByText(`${DEVICES} of ${DEVICES}`).waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
