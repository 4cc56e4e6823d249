// The screen of API keys: a key's way from its creation to its end, as a person goes it.
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { accessFindings, type Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Answer, asKey, type TestTenant } from "../../kit/gateway/world.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let visitor: Visitor;
beforeAll(async () => {
  tenant = await world.tenant();
  visitor = await chromium.visitor();
  await visitor.signIn(tenant.ownerId, { path: "/keys" });
});
beforeEach(async () => void (await visitor.page.goto("/keys", { waitUntil: "domcontentloaded" })));

const statusWith = async (apiKey: string): Promise<number> => (await world.call(asKey(apiKey, tenant.tenantId), "GET", "/v1/devices")).status;
const secretOnPage = async (): Promise<string> =>
  (await visitor.page
    .getByRole("dialog")
    .getByRole("button", { name: /^svk_\w+$/ })
    .textContent()) ?? "";
const makeKey = async (name: string): Promise<Answer["body"]> =>
  (await world.call(await tenant.user(), "POST", "/v1/api-keys", { body: { name, role: "viewer" } })).body.data;
const open = async (name: string): Promise<void> => {
  await visitor.page.getByRole("grid", { name: "API keys" }).getByText(name, { exact: true }).click();
  await visitor.page.getByRole("heading", { name, exact: true }).waitFor();
};

describe("a key", () => {
  test("works as soon as it is created, with a name that is shown as text, and its secret is shown once", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Create a key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill(HOSTILE);
    await dialog.getByLabel("Role", { exact: true }).selectOption("viewer");
    await dialog.getByRole("checkbox", { name: "device:read" }).check();
    expect(await accessFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Create a key" }).click();
    await dialog.getByText("Copy it now").waitFor();
    const secret = await secretOnPage();
    expect(await statusWith(secret)).toBe(200);
    expect((await world.call(asKey(secret, tenant.tenantId), "GET", "/v1/commands")).status).toBe(403);
    expect(await dialog.getByText("curl").textContent()).toContain(`'x-api-key: ${secret}'`);
    expect(await accessFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "I have copied it" }).click();
    await open(HOSTILE);
    expect(await page.content()).not.toContain(secret);
    expect(new URL(page.url()).searchParams.get("key")).toMatch(/^key_/);
    expect(await accessFindings(page)).toEqual([]);
  });

  test("keeps its old secret for as long as the rotation says", async () => {
    const { page } = visitor;
    const { apiKey } = await makeKey("rotated");
    await open("rotated");
    await page.getByRole("button", { name: "Rotate" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    await page.getByText("The old secret works until").waitFor();
    const secret = await secretOnPage();
    expect([await statusWith(secret), await statusWith(apiKey)]).toEqual([200, 200]);
    await page.getByRole("button", { name: "I have copied it" }).click();
  });

  test("changes its name and allowed addresses, and a mistyped address is explained in the form", async () => {
    const { page, problems, signIn, close } = await chromium.visitor();
    const { keyId } = await makeKey("changed");
    await signIn(tenant.ownerId, { path: `/keys?key=${keyId}` });
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("renamed");
    await page.getByRole("dialog").getByLabel("Allowed addresses").fill("nowhere");
    await page.getByRole("button", { name: "Save" }).click();
    await page
      .getByRole("dialog")
      .getByRole("alert")
      .getByText(/^ipAllowlist/)
      .waitFor();
    await page.getByRole("dialog").getByLabel("Allowed addresses").fill("203.0.113.0/24");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "renamed" }).waitFor();
    const { body } = await world.call(await tenant.user(), "GET", `/v1/api-keys/${keyId}`);
    expect(body.data).toMatchObject({ name: "renamed", ipAllowlist: ["203.0.113.0/24"] });
    expect(problems.map(({ kind }) => kind)).toEqual(["answer"]);
    await close();
  });

  test("is refused once somebody has revoked it here", async () => {
    const { page } = visitor;
    const { apiKey } = await makeKey("revoked here");
    await open("revoked here");
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("region", { name: "revoked here" }).getByText("revoked", { exact: true }).waitFor();
    expect(await statusWith(apiKey)).toBe(401);
    expect(await page.getByRole("button", { name: "Rotate" }).count()).toBe(0);
  });

  test("that somebody else creates and revokes is shown so without a reload", async () => {
    const { page } = visitor;
    await page.getByText("live", { exact: true }).waitFor();
    const { keyId } = await makeKey("from elsewhere");
    const row = page.getByRole("row").filter({ hasText: "from elsewhere" });
    await row.getByText("active", { exact: true }).waitFor();
    await world.call(await tenant.user(), "DELETE", `/v1/api-keys/${keyId}`);
    await row.getByText("revoked", { exact: true }).waitFor();
  });
});

test("all of this went without a complaint of the browser", () => {
  expect(visitor.problems).toEqual([]);
});

test("the key of another tenant is unknown", async () => {
  const other = await world.tenant();
  const { body } = await world.call(await other.user(), "POST", "/v1/api-keys", { body: { name: "foreign" } });
  // The browser complains of the refusal.
  const { page, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: `/keys?key=${body.data.keyId}` });
  await page.getByText("Unknown, or not yours.").waitFor();
  expect(await page.content()).not.toContain("foreign");
  await close();
});

test("a viewer sees neither the places nor the actions that their role lacks, and nothing is refused", async () => {
  await tenant.token("viewer");
  const viewer = await chromium.visitor();
  await viewer.signIn(tenant.ownerId.replace("owner", "viewer"), { path: "/settings" });
  const { page, go } = viewer;
  await page.getByRole("heading", { name: "Tenant", exact: true }).waitFor();
  for (const [path, title] of [
    ["/keys", "API keys"],
    ["/audit", "Audit log"],
    ["/billing", "Usage and limits"],
  ] as const) {
    expect(await page.getByRole("link", { name: title }).count()).toBe(0);
    await go(path);
    await page.getByRole("heading", { name: title }).waitFor();
    await page.getByText("Your role does not permit you to see this.").waitFor();
  }
  await go("/settings");
  await page.getByRole("heading", { name: "Tenant", exact: true }).waitFor();
  expect(await page.getByRole("button", { name: /Save|Delete|Start/ }).count()).toBe(0);
  await go("/account");
  await page.getByRole("heading", { name: "Notifications" }).waitFor();
  await eventually(async () => expect(await page.getByText("this session").count()).toBe(1));
  expect(viewer.problems).toEqual([]);
  await viewer.close();
});
