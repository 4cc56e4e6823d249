// The browsable documentation in a browser: nothing is drawn before somebody opens it, every operation is found, and a call with a key is answered.
import { beforeAll, expect, test } from "vitest";
import { TAGS } from "../../../protocol/guide/index.ts";
import { accessFindings, type Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { anonymous, type TestTenant } from "../../kit/gateway/world.ts";

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let visitor: Visitor;
beforeAll(async () => {
  tenant = await world.tenant();
  visitor = await chromium.visitor();
});

const open = async (hash = ""): Promise<void> => {
  await visitor.page.goto("about:blank");
  await visitor.page.goto(`/v1/docs${hash}`, { waitUntil: "domcontentloaded" });
  await visitor.page.getByRole("status").getByText("operations").waitFor();
};
/** Swagger UI draws the group first, which takes a busy machine long. */
const DRAWN = { timeout: 30_000 };
const groups = (): Promise<string[]> =>
  visitor.page.locator("nav summary").evaluateAll((all) => all.filter((each) => each.checkVisibility()).map((each) => each.textContent ?? ""));
const drawn = () => visitor.page.locator(".opblock");

test("it lists every operation in the groups and the order of the interface, and draws none before somebody asks", async () => {
  const { body: description } = await world.call(anonymous, "GET", "/v1/openapi.json");
  const operations = Object.values<Record<string, unknown>>(description.paths).flatMap((item) => Object.keys(item).filter((key) => key !== "parameters"));
  await open();
  expect(await groups()).toEqual(Object.keys(TAGS));
  expect(await visitor.page.locator("nav li").count()).toBe(operations.length);
  expect(await drawn().count()).toBe(0);
  expect(await accessFindings(visitor.page)).toEqual([]);
  expect(visitor.problems).toEqual([]);
});

test("the filter finds operations by path, summary and id, and whole groups by name", async () => {
  await open();
  const filter = visitor.page.getByLabel("Filter");
  for (const [text, found] of [
    ["DELETE /webhooks", ["Webhooks"]],
    ["fleet MANAGEMENT", ["Fleet Management"]],
    ["devices.provision", ["Devices"]],
    ["[(*", []],
  ] as const) {
    await filter.fill(text);
    expect([text, await groups()]).toEqual([text, found]);
  }
  await filter.fill("");
  expect(await groups()).toEqual(Object.keys(TAGS));
});

test("a link opens its operation alone, and a try with a key is answered", async () => {
  // A browser of its own: it has no key yet.
  const own = await chromium.visitor();
  const { page } = own;
  const called: string[] = [];
  page.on("request", (request) => void called.push(new URL(request.url()).pathname));
  await page.goto("/v1/docs#/Devices/devices.list", { waitUntil: "domcontentloaded" });
  const operation = page.locator(".opblock.is-open");
  await operation.getByRole("button", { name: "Execute" }).waitFor(DRAWN);
  expect(await page.locator(".opblock-tag").count()).toBe(1);
  expect(await operation.count()).toBe(1);
  await page.getByRole("button", { name: "Authorize", exact: true }).click();
  const { "x-api-key": apiKey = "", "x-svc-tenant-id": tenantId = "" } = tenant.apiKey.headers("");
  for (const [scheme, value] of [
    ["apiKey", apiKey],
    ["tenantId", tenantId],
  ] as const) {
    const form = page
      .locator(".auth-container")
      .filter({ has: page.getByRole("heading", { name: new RegExp(`^${scheme}\\b`) }) })
      .first();
    await form.getByRole("textbox").fill(value);
    await form.getByRole("button", { name: /Apply/ }).click();
  }
  await page.locator(".close-modal").click();
  called.length = 0;
  await operation.getByRole("button", { name: "Execute" }).click();
  await operation.locator(".live-responses-table .response-col_status").getByText("200").waitFor();
  expect(called).toEqual(["/v1/devices"]);
  // The next group opens in the place of the last one, and the key is still there.
  await page.getByLabel("Filter").fill("webhooks.list");
  await page.locator("nav").getByRole("link", { name: "List webhooks" }).click();
  await page.locator(".opblock.is-open", { hasText: "List webhooks" }).waitFor(DRAWN);
  expect(await page.locator(".opblock-tag").count()).toBe(1);
  expect(await page.evaluate<string>("localStorage.getItem('authorized') ?? ''")).toContain(apiKey);
  expect(own.problems).toEqual([]);
  await own.close();
});

test("below the other prefix a try goes to the address of the page", async () => {
  const { page, problems, close } = await chromium.visitor();
  await page.goto("/api/v1/docs#/Devices/devices.list", { waitUntil: "domcontentloaded" });
  const called = page.waitForRequest((request) => new URL(request.url()).pathname.endsWith("/devices"), DRAWN);
  await page.locator(".opblock.is-open").getByRole("button", { name: "Execute" }).click(DRAWN);
  expect(new URL((await called).url()).pathname).toBe("/api/v1/devices");
  await page.locator(".live-responses-table .response-col_status").getByText("401").waitFor();
  expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await close();
});
