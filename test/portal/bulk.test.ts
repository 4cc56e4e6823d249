// Bulk jobs: many selected devices are changed by one, and its page shows what became of each.
import { expect, test } from "vitest";
import { openRig } from "../features/apps/kit.ts";
import { findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";

const DEVICES = 120;
const APPS = 105;
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

test("all apps that match but one are stopped by a job, and nobody is asked for what they may not do", async () => {
  const rig = await openRig(world);
  const { deploymentId } = await rig.deploy({ name: "store" });
  const { appId } = await rig.until(`/deployments/${deploymentId}`, "active");
  await world.sql.query(
    `insert into apps select (jsonb_populate_record(a, jsonb_build_object('app_id', overlay(app_id placing lpad(n::text, 4, '0') from 27), 'deployment_id', null, 'name', 'copy ' || n,
      'secrets', null, 'secret_keys', array[]::text[]))).* from apps a, generate_series(2, ${APPS}) n where a.app_id = $1`,
    [appId],
  );
  const visitor = await chromium.visitor();
  const { page } = visitor;
  await visitor.signIn(rig.tenant.ownerId, { path: "/apps?sort=name" });
  await page.getByRole("checkbox", { name: "Select the first 100 or none" }).click();
  await page.getByRole("button", { name: `Select all ${APPS} that match` }).click();
  await page.getByRole("checkbox", { name: "Select copy 10", exact: true }).locator("..").click();
  await page.getByRole("button", { name: "Stop…" }).click();
  await page.getByRole("heading", { name: `Stop ${APPS - 1} apps?` }).waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("heading", { name: "Stop apps" }).waitFor();
  const { rows } = await world.sql.query(
    "select operation, total, (select count(*)::int from bulk_items i where i.target_id = $2) as left_out from bulk_operations where tenant_id = $1",
    [rig.tenant.tenantId, `${appId.slice(0, -4)}0010`],
  );
  expect(rows).toEqual([{ operation: "app.stop", total: APPS - 1, left_out: 0 }]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
  await rig.tenant.user("viewer");
  const viewer = await chromium.visitor();
  await viewer.signIn(rig.tenant.userId("viewer"), { path: "/apps?sort=name" });
  await viewer.page.getByRole("grid", { name: "Apps" }).getByText("copy 10", { exact: true }).waitFor();
  expect(await viewer.page.getByRole("checkbox").count()).toBe(0);
  await viewer.close();
  await rig.stop();
});
