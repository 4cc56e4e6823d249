// Lists: saved views, rows that somebody chooses, and what is done with many at once.
import { beforeAll, expect, test } from "vitest";
import { findingsInEveryLook, type Visitor } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import type { Caller, TestTenant } from "../kit/gateway/world.ts";

const DEVICES = 120;
const OFFLINE = 38;

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  tenant = await world.tenant();
  owner = await tenant.user();
  await world.call(owner, "POST", "/v1/devices/provision", { body: { count: DEVICES } });
  await world.sql.query(
    `update devices d set name = 'cam-' || lpad(n::text, 3, '0'), status = case when n <= ${OFFLINE} then 'offline' else 'online' end
      from (select device_id, row_number() over (order by device_id) n from devices where tenant_id = $1) o where d.device_id = o.device_id`,
    [tenant.tenantId],
  );
});
const open = async (path: string, userId = tenant.ownerId): Promise<Visitor> => {
  const visitor = await chromium.visitor();
  await visitor.signIn(userId, { path });
  return visitor;
};
const countOf = async (query: string): Promise<number> => (await world.call(owner, "GET", `/v1/devices?${query}&pageSize=1`)).body.meta.pagination.total;
const gridOf = ({ page }: Visitor) => page.getByRole("grid", { name: "Devices" });
const barOf = ({ page }: Visitor) => page.getByRole("region", { name: "Selected rows" });

test("the 38 devices that went offline are tagged with five clicks, and the present ones are not", async () => {
  const visitor = await open("/");
  const { page } = visitor;
  let clicks = 0;
  const click = async (name: string, role: "link" | "button" | "checkbox"): Promise<void> => {
    clicks += 1;
    await page.getByRole(role, { name }).first().click();
  };
  await click(`Offline ${OFFLINE}`, "link");
  await click("Select the first 100 or none", "checkbox");
  await click("Tag…", "button");
  await page.getByRole("combobox", { name: "Add" }).fill("to-check");
  await click("Change tags", "button");
  await barOf(visitor).getByText(`Tags: ${OFFLINE} done`).waitFor();
  expect(clicks).toBeLessThanOrEqual(5);
  expect([await countOf("tag=to-check"), await countOf("tag=to-check&status=offline")]).toEqual([OFFLINE, OFFLINE]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test("rows are chosen by x, Shift J and Shift-click, and all that match without reading them", async () => {
  const visitor = await open("/devices?sort=name");
  const { page } = visitor;
  await gridOf(visitor).getByText("cam-001").waitFor();
  await gridOf(visitor).focus();
  await page.keyboard.press("x");
  for (const _ of [1, 2]) await page.keyboard.press("Shift+J");
  await barOf(visitor).getByText("3 selected").waitFor();
  await gridOf(visitor)
    .getByText("cam-006")
    .click({ modifiers: ["Shift"] });
  await barOf(visitor).getByText("6 selected").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  const calls: string[] = [];
  page.on("request", (request) => void calls.push(request.url()));
  await barOf(visitor)
    .getByRole("button", { name: `Select all ${DEVICES} that match` })
    .click();
  await barOf(visitor).getByText(`${DEVICES} selected`).waitFor();
  expect(calls.filter((url) => url.includes("devices.list"))).toEqual([]);
  await page.getByRole("checkbox", { name: "Select cam-002" }).locator("..").click();
  await barOf(visitor)
    .getByText(`${DEVICES - 1} selected`)
    .waitFor();
  await barOf(visitor).getByRole("button", { name: "Command…" }).click();
  await page.getByLabel("Type").fill("ping");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  // So many become one job, which goes on without the page.
  await page.getByRole("heading", { name: "Command" }).waitFor();
  const ordered = "select count(*)::int n from commands where tenant_id = $1";
  await eventually(async () => expect((await world.sql.query(ordered, [tenant.tenantId])).rows).toEqual([{ n: DEVICES - 1 }]));
  const { rows } = await world.sql.query("select count(*)::int n, count(distinct device_id)::int d from commands where tenant_id = $1", [tenant.tenantId]);
  expect(rows).toEqual([{ n: DEVICES - 1, d: DEVICES - 1 }]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test("a device that refuses keeps its place in the selection, with the reason beside it", async () => {
  const [full] = (await world.call(owner, "GET", "/v1/devices?q=cam-051")).body.data;
  const tags = Array.from({ length: 50 }, (_, at) => `tag-${at}`);
  await world.call(owner, "PATCH", `/v1/devices/${full.deviceId}`, { body: { tags } });
  const visitor = await open("/devices?sort=name&q=cam-05");
  const { page } = visitor;
  await gridOf(visitor).getByText("cam-051").waitFor();
  await page.getByRole("checkbox", { name: "Select the first 100 or none" }).click();
  await barOf(visitor).getByText("10 selected").waitFor();
  await barOf(visitor).getByRole("button", { name: "Tag…" }).click();
  await page.getByRole("combobox", { name: "Add" }).fill("one-more");
  await page.getByRole("button", { name: "Change tags" }).click();
  await barOf(visitor).getByText("Tags: 9 done, 1 failed and still selected").waitFor();
  await gridOf(visitor)
    .getByRole("row", { name: /cam-051/ })
    .getByText("VALIDATION_FAILED")
    .waitFor();
  await barOf(visitor).getByText("1 selected").waitFor();
  expect(await countOf("tag=one-more")).toBe(9);
  expect(visitor.problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await visitor.close();
});

test("a search is saved as a view, marked, renamed, shared with those who may not change it, and deleted", async () => {
  const visitor = await open("/devices?status=offline&q=cam-00");
  const { page } = visitor;
  const views = page.getByRole("navigation", { name: "Views" });
  await page.getByRole("button", { name: "Save view" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Dark aisle");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await views.getByRole("link", { name: /^Dark aisle/ }).waitFor();
  expect(await views.locator("[aria-current=page]").innerText()).toMatch(/^Dark aisle\s*9$/);
  await views.getByRole("link", { name: "All" }).click();
  await page.getByText(`${DEVICES} devices`).waitFor();
  expect(await page.getByRole("button", { name: /view$/ }).count()).toBe(0);
  await views.getByRole("link", { name: "Dark aisle" }).click();
  await page.getByText("9 devices").waitFor();
  await page.getByRole("button", { name: "Change view" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Aisle 9");
  await page.getByRole("checkbox", { name: "Everybody in the tenant sees it" }).check();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await views.getByRole("link", { name: /^Aisle 9/ }).waitFor();

  await tenant.token("viewer");
  const viewer = await open("/devices", tenant.ownerId.replace("owner", "viewer"));
  await viewer.page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Aisle 9" }).click();
  await viewer.page.getByText("9 devices").waitFor();
  expect(await viewer.page.getByRole("checkbox").count()).toBe(0);
  expect(await viewer.page.getByRole("button", { name: /view$/ }).count()).toBe(0);

  await page.getByRole("button", { name: "Change view" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete view" }).click();
  await eventually(async () => expect(await viewer.page.getByRole("link", { name: "Aisle 9" }).count()).toBe(0));
  expect([...visitor.problems, ...viewer.problems]).toEqual([]);
  await visitor.close();
  await viewer.close();
});
