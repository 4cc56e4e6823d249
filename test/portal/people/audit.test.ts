// The screen of the audit log: what a change did, the filters in its URL, and the log as a file.
import { readFile } from "node:fs/promises";
import type { Download, Page } from "playwright-core";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { accessFindings, type Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import type { Caller, TestTenant } from "../../kit/gateway/world.ts";
import { filterBy, tokensOf } from "../stage.ts";

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let owner: Caller;
let visitor: Visitor;
let keyId: string;
beforeAll(async () => {
  tenant = await world.tenant();
  owner = await tenant.user();
  keyId = (await world.call(owner, "POST", "/v1/api-keys", { body: { name: "before" } })).body.data.keyId;
  await world.call(owner, "PATCH", `/v1/api-keys/${keyId}`, { body: { name: "after" } });
  const { deviceId } = await tenant.device();
  await world.call(owner, "PATCH", `/v1/devices/${deviceId}`, { body: { name: "roof" } });
  visitor = await chromium.visitor();
  await visitor.signIn(tenant.ownerId, { path: "/audit" });
});
beforeEach(async () => void (await visitor.page.goto("/audit", { waitUntil: "domcontentloaded" })));

const recordOn = (page: Page) => page.getByRole("region", { name: "Record" });
const record = () => recordOn(visitor.page);
const textOf = async (download: Download): Promise<string> => readFile(await download.path(), "utf8");

test("a record shows who changed which field from what to what, and leads to what was changed", async () => {
  const { page } = visitor;
  await page.getByRole("grid").getByText("apiKeys.update").click();
  await record()
    .getByRole("row", { name: /^name .*before .*after$/ })
    .waitFor();
  expect(await record().textContent()).toContain(tenant.ownerId);
  expect(await accessFindings(page)).toEqual([]);
  await page.reload({ waitUntil: "domcontentloaded" });
  await record().getByRole("link", { name: keyId }).click();
  await page.getByRole("heading", { name: "after", exact: true }).waitFor();
  await page.goBack();
  await record().waitFor();
  await page.keyboard.press("Escape");
  await record().waitFor({ state: "detached" });
});

test("the record of a new key masks its secret", async () => {
  await visitor.page.getByRole("grid").getByText("apiKeys.create").click();
  await record()
    .getByRole("row", { name: /^hash .*\[masked\]$/ })
    .waitFor();
});

test("the record of a device leads to the device", async () => {
  const { page } = visitor;
  await page.getByRole("grid").getByText("devices.update").click();
  await record().getByRole("link", { name: /^dev_/ }).click();
  await page.getByRole("heading", { name: "roof" }).first().waitFor();
});

test("filters stand in the URL, survive a reload, and one of them is a pasted id", async () => {
  const { page } = visitor;
  const filter = page.getByRole("combobox", { name: "Filter records" });
  await page.getByRole("grid").getByText("devices.update").waitFor();
  await filter.fill("action:apiKeys.update ");
  await page.getByRole("grid").getByText("devices.update").waitFor({ state: "detached" });
  await page.getByRole("grid").getByText("apiKeys.update").waitFor();
  await page.reload({ waitUntil: "domcontentloaded" });
  await page.getByRole("grid").getByText("apiKeys.update").waitFor();
  expect(await tokensOf(page)).toEqual(["action:apiKeys.update"]);
  await filterBy(page, "Filter records", keyId);
  await page.getByRole("grid").getByText("apiKeys.create").waitFor();
  await page.waitForURL((url) => url.searchParams.get("resource") === keyId);
  expect(await page.getByRole("grid").getByText("devices.update").count()).toBe(0);
  await filterBy(page, "Filter records", "since:2099-01-01");
  await page.getByText("No record matches these filters.").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByRole("grid").getByText("devices.update").waitFor();
});

/** The page's script: the next change of the URL finds that somebody is typing. */
const TYPES_AT_NEXT_URL = `
  const { pushState, replaceState } = history;
  const typing = (change) => (...given) => {
    Object.assign(history, { pushState, replaceState });
    const input = document.querySelector("input[data-filter]");
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, "key_typed");
    input.dispatchEvent(new Event("input", { bubbles: true }));
    change.apply(history, given);
  };
  Object.assign(history, { pushState: typing(pushState), replaceState: typing(replaceState) });
`;

test("what somebody types while the list still goes to its former filters stays typed", async () => {
  const { page } = visitor;
  const filter = page.getByRole("combobox", { name: "Filter records" });
  await filter.fill("action:apiKeys.update ");
  await page.waitForURL((url) => url.searchParams.get("action") === "apiKeys.update");
  // At the very moment at which the URL changes, before the page has heard of it.
  await page.evaluate(TYPES_AT_NEXT_URL);
  await page.getByRole("button", { name: "Remove the filter action:apiKeys.update" }).click();
  await page.waitForURL((url) => url.searchParams.get("resource") === "key_typed");
  await filterBy(page, "Filter records", "");
  await page.getByRole("grid").getByText("devices.update").waitFor();
});

test("a change that somebody makes now appears without a reload", async () => {
  const { page } = visitor;
  await page.getByText("live", { exact: true }).waitFor();
  await world.call(owner, "PATCH", `/v1/tenants/${tenant.tenantId}`, { body: { name: "renamed" } });
  await page.getByRole("grid").getByText("tenants.update").waitFor();
});

test("both exports hold the filtered records", async () => {
  const { page } = visitor;
  await visitor.go(`/audit?resource=${keyId}`);
  await page.getByRole("grid").getByText("apiKeys.update").waitFor();
  const [lines] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export NDJSON" }).click()]);
  const records = (await textOf(lines)).trimEnd().split("\n");
  expect(records.map((line) => JSON.parse(line).action)).toEqual(["apiKeys.create", "apiKeys.update"]);
  const [csv] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export CSV" }).click()]);
  expect((await textOf(csv)).trimEnd().split(/\r?\n/)).toHaveLength(3);
});

test("nothing of this made the browser complain", () => {
  expect(visitor.problems).toEqual([]);
});

test("the record of another tenant is unknown", async () => {
  const other = await world.tenant();
  const { body } = await world.call(await other.user(), "GET", "/v1/audit-logs");
  // The browser complains of the refusal.
  const { page, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: `/audit?record=${body.data[0].auditId}` });
  await recordOn(page).getByText("Unknown, or not yours.").waitFor();
  await close();
});
