// Two pages of one browser in two tenants: each stays with the tenant that it shows.
import { beforeEach, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import type { TestTenant } from "../../kit/gateway/world.ts";

const { world, chromium } = await openConsole();
let first: TestTenant;
let second: TestTenant;
beforeEach(async () => {
  first = await world.tenant();
  second = await world.tenant();
  await world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'owner')", [
    newId("mem"),
    second.tenantId,
    first.ownerId,
  ]);
});
const nameOf = async (of: TestTenant): Promise<string> => (await world.call(await of.user(), "GET", `/v1/tenants/${of.tenantId}`)).body.data.name;
const keysOf = async (of: TestTenant): Promise<readonly string[]> =>
  (await world.call(await of.user(), "GET", "/v1/api-keys")).body.data.map(({ name }: { readonly name: string }) => name);

/** Signs in and chooses the first tenant. */
const signIn = async () => {
  const visitor = await chromium.visitor();
  const { page } = visitor;
  await visitor.signIn(first.ownerId, { path: "/devices" });
  const [here, there] = [await nameOf(first), await nameOf(second)];
  await page.getByRole("region", { name: "Your tenants" }).getByRole("button", { name: here, exact: true }).click();
  await page.getByRole("button", { name: new RegExp(`^${here} .*Switch tenant$`) }).waitFor();
  return { visitor, page, here, there };
};

test("a tenant that another page switches to gets nothing of what somebody types into an open dialog", async () => {
  const { visitor, page, here, there } = await signIn();
  await visitor.go("/keys");
  await page.getByRole("button", { name: "Create a key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Night backup");

  const other = await visitor.context.newPage();
  await other.goto("/devices", { waitUntil: "domcontentloaded" });
  await other.getByRole("button", { name: new RegExp(`^${here} .*Switch tenant$`) }).click();
  await other.getByRole("menuitemradio", { name: there }).click();
  await other.getByRole("button", { name: new RegExp(`^${there} .*Switch tenant$`) }).waitFor();
  await other.getByRole("status").getByText("live", { exact: true }).waitFor();

  expect(await dialog.getByLabel("Name").inputValue()).toBe("Night backup");
  await dialog.getByRole("button", { name: "Create a key" }).click();
  await dialog.getByRole("button", { name: "I have copied it" }).click();
  await page.getByRole("grid", { name: "API keys" }).getByText("Night backup").waitFor();
  expect([await keysOf(first), (await keysOf(second)).includes("Night backup")]).toEqual([expect.arrayContaining(["Night backup"]), false]);

  // Each page hears of its own tenant.
  await world.call(await second.user(), "POST", "/v1/devices/provision", { body: { count: 2 } });
  await other.getByText("2 devices", { exact: true }).waitFor();
  await visitor.go("/devices");
  await page.getByText("Devices appear here once they are paired.").waitFor();
  await world.call(await first.user(), "POST", "/v1/devices/provision", { body: { count: 1 } });
  await page.getByText("1 device", { exact: true }).waitFor();
  expect(await other.getByText("2 devices", { exact: true }).count()).toBe(1);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test("a tenant is switched with two clicks, and the page stays at its place", async () => {
  const { visitor, page, there } = await signIn();
  await visitor.go("/commands");
  const button = page.getByRole("button", { name: /Switch tenant$/ });
  let clicks = 0;
  const click = async (locator: typeof button): Promise<void> => {
    clicks += 1;
    await locator.click();
  };
  await click(button);
  await click(page.getByRole("menuitemradio", { name: there }));
  await eventually(async () => expect(await button.textContent()).toContain(there));
  expect([clicks, new URL(page.url()).pathname]).toEqual([2, "/commands"]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
