// The list of devices at the size that it is made for, and what its URL keeps.
import { beforeAll, expect, test } from "vitest";
import type { Visitor } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import type { TestTenant } from "../kit/gateway/world.ts";

const DEVICES = 10_000;
const MAX_HEAP_BYTES = 12 * 1_048_576;
const MAX_ELEMENTS = 1_500;

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let visitor: Visitor;
beforeAll(async () => {
  tenant = await world.tenant();
  const owner = await tenant.user();
  for (let made = 0; made < DEVICES; made += 1_000)
    await world.call(owner, "POST", "/v1/devices/provision", { body: { count: 1_000, tags: [`batch:${made}`] } });
  await world.sql.query(
    "update devices d set name = 'cam-' || lpad(n::text, 5, '0') from (select device_id, row_number() over (order by device_id) n from devices where tenant_id = $1) o where d.device_id = o.device_id",
    [tenant.tenantId],
  );
  visitor = await chromium.visitor();
  await visitor.signIn(tenant.ownerId);
});

test("End shows the last of 10,000 devices, within the bounds of memory", async () => {
  const { page, context } = visitor;
  await page.goto("/devices?sort=name", { waitUntil: "domcontentloaded" });
  await page.getByText("10,000 devices").waitFor();
  const grid = page.getByRole("grid", { name: "Devices" });
  await grid.focus();
  await page.keyboard.press("End");
  await page.getByText("cam-10000").waitFor();
  for (let at = 0; at < 40; at += 1) await page.keyboard.press("PageUp");
  await page.keyboard.press("Home");
  await page.getByText("cam-00001").waitFor();
  const session = await context.newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  expect(usedSize).toBeLessThan(MAX_HEAP_BYTES);
  expect(await page.evaluate("document.querySelectorAll('*').length")).toBeLessThan(MAX_ELEMENTS);
});

test("a part of a name finds its device, and the filter survives a reload and the way back", async () => {
  const { page } = visitor;
  await page.goto("/devices?sort=name", { waitUntil: "domcontentloaded" });
  await page.getByRole("combobox", { name: "Filter devices" }).fill("am-0432 ");
  await page.getByText("10 devices").waitFor();
  expect(new URL(page.url()).searchParams.get("q")).toBe("am-0432");
  await page.reload({ waitUntil: "domcontentloaded" });
  await page.getByText("10 devices").waitFor();
  await page.getByText("cam-04321").click();
  await page.getByRole("heading", { name: "cam-04321" }).waitFor();
  await page.goBack();
  await page.getByText("10 devices").waitFor();
});

test("tags are suggested, and a filter without a match offers to clear itself", async () => {
  const { page } = visitor;
  await page.goto("/devices", { waitUntil: "domcontentloaded" });
  await page.getByText("10,000 devices").waitFor();
  const filter = page.getByRole("combobox", { name: "Filter devices" });
  await filter.fill("tag:");
  await page.getByRole("option", { name: "tag:batch:1000" }).click();
  await page.getByText("1,000 devices").waitFor();
  await filter.fill("tag:batch:1000 nowhere");
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByText("10,000 devices").waitFor();
  expect(await filter.inputValue()).toBe("");
  expect(visitor.problems).toEqual([]);
});
