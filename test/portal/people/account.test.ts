// The screens of the person's own account and of the tenant's settings: sessions that end, tenants that change, and what stays while they do.
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { accessFindings, type Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import type { TestTenant } from "../../kit/gateway/world.ts";

const { world, chromium } = await openConsole();

const signedIn = async (userId: string, path: string): Promise<Visitor> => {
  const visitor = await chromium.visitor();
  await visitor.signIn(userId, { path });
  return visitor;
};
const join = (tenant: TestTenant, userId: string): Promise<unknown> =>
  world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'owner')", [newId("mem"), tenant.tenantId, userId]);

describe.concurrent("a session", () => {
  test("that the person ends elsewhere asks for a new sign-in over the page, whose form stays and can be sent then", async () => {
    const { ownerId } = await world.tenant();
    const there = await signedIn(ownerId, "/keys");
    await there.page.getByRole("button", { name: "Create a key" }).click();
    await there.page.getByRole("dialog").getByLabel("Name").fill("half typed");
    const here = await signedIn(ownerId, "/account");
    await here.page.getByText("this session").waitFor();
    expect(await accessFindings(here.page)).toEqual([]);
    await here.page.getByRole("button", { name: /^End the session/ }).click();
    await here.page.getByRole("button", { name: /^End the session/ }).waitFor({ state: "detached" });
    const again = there.page.getByRole("dialog", { name: "Your session has ended" });
    await again.waitFor();
    const { url } = await world.app.signInLink({ userId: ownerId });
    await again.getByLabel("Link, or its token").fill(url);
    await again.getByRole("button", { name: "Sign in" }).click();
    await again.waitFor({ state: "detached" });
    const form = there.page.getByRole("dialog", { name: "Create a key" });
    expect(await form.getByLabel("Name").inputValue()).toBe("half typed");
    await form.getByRole("button", { name: "Create a key" }).click();
    await there.page.getByText("Copy it now").waitFor();
    await there.page.getByRole("button", { name: "I have copied it" }).click();
    await there.page.getByRole("status").getByText("live", { exact: true }).waitFor();
    await Promise.all([here.close(), there.close()]);
  });

  test("ends when the person signs out, and the way back leads to the sign-in", async () => {
    const { ownerId } = await world.tenant();
    const { page, problems, close } = await signedIn(ownerId, "/account");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/sign-in");
    // A read that was under way when the session ended is refused. The page that follows makes no call that would be.
    const before = problems.length;
    await page.goto("/devices", { waitUntil: "domcontentloaded" });
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(problems.slice(before)).toEqual([]);
    await close();
  });
});

test.concurrent("switching the tenant shows the devices of the other one, and no longer those of the first", async () => {
  const [first, second] = [await world.tenant(), await world.tenant()];
  await join(second, first.ownerId);
  for (const [tenant, name] of [
    [first, "first-device"],
    [second, "second-device"],
  ] as const) {
    const { deviceId } = await tenant.device();
    await world.call(await tenant.user(), "PATCH", `/v1/devices/${deviceId}`, { body: { name } });
  }
  const { page, problems, close } = await signedIn(first.ownerId, "/devices");
  const nameOf = async ({ tenantId, user }: TestTenant): Promise<string> => (await world.call(await user(), "GET", `/v1/tenants/${tenantId}`)).body.data.name;
  // Whoever has several tenants and no usual one chooses first.
  await page
    .getByRole("region", { name: "Your tenants" })
    .getByRole("button", { name: await nameOf(first) })
    .click();
  await page.getByText("first-device").first().waitFor();
  expect(await page.getByText("second-device").count()).toBe(0);
  await page.getByRole("button", { name: /: account$/ }).click();
  await page.getByRole("menuitem", { name: "Account" }).click();
  await page.getByRole("button", { name: `Switch to ${await nameOf(second)}` }).click();
  await page
    .getByRole("listitem")
    .filter({ hasText: await nameOf(second) })
    .getByText("you are here")
    .waitFor();
  await page.getByRole("link", { name: "Devices", exact: true }).click();
  await page.getByText("second-device").first().waitFor();
  expect(await page.getByText("first-device").count()).toBe(0);
  expect(problems).toEqual([]);
  await close();
});

test.concurrent("the profile and the notifications are stored, and the person can take their data along", async () => {
  const { ownerId } = await world.tenant();
  const { page, problems, close } = await signedIn(ownerId, "/account");
  await page.getByLabel("Name").fill("Ada");
  await page.getByLabel("Time zone").fill("Europe/Lisbon");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  const notice = page.getByRole("checkbox", { name: "Somebody becomes a member: Mail" });
  // The reload would cut off the call.
  await Promise.all([page.waitForResponse((answer) => answer.url().includes("account.updateNotifications")), notice.click()]);
  await page.reload({ waitUntil: "domcontentloaded" });
  await notice.waitFor();
  expect([await notice.isChecked(), await page.getByLabel("Name").inputValue()]).toEqual([true, "Ada"]);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download my data" }).click()]);
  expect(JSON.parse(await readFile(await download.path(), "utf8")).account).toMatchObject({ userId: ownerId, name: "Ada", timezone: "Europe/Lisbon" });
  expect(problems).toEqual([]);
  await close();
});

test.concurrent("the last owner of a tenant cannot delete the account, and reads why in the dialog", async () => {
  const { ownerId } = await world.tenant();
  const { page, close } = await signedIn(ownerId, "/account");
  await page.getByRole("button", { name: "Delete my account" }).click();
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByRole("button", { name: "Delete my account" }).isDisabled()).toBe(true);
  await dialog.getByLabel("Type delete my account to confirm").fill("delete my account");
  await dialog.getByRole("button", { name: "Delete my account" }).click();
  await dialog.getByRole("alert").getByText("LAST_OWNER").waitFor();
  await close();
});

describe.concurrent("the settings", () => {
  test("are stored, and a form says when somebody else changed them meanwhile", async () => {
    const tenant = await world.tenant();
    const { page, problems, close } = await signedIn(tenant.ownerId, "/settings");
    const settings = page.getByRole("region", { name: "Devices and pairing" });
    const seconds = settings.getByLabel("Seconds of silence until a device counts as offline");
    await seconds.fill("300");
    await settings.getByRole("button", { name: "Save" }).click();
    await settings.getByText("Saved.").waitFor();
    expect(await accessFindings(page)).toEqual([]);
    await page.getByText("live", { exact: true }).waitFor();
    await seconds.fill("400");
    await world.call(await tenant.user(), "PATCH", `/v1/tenants/${tenant.tenantId}/settings`, { body: { offlineAfterSeconds: 500 } });
    await settings.getByText("This was changed elsewhere meanwhile.").waitFor();
    expect(await seconds.inputValue()).toBe("400");
    await settings.getByRole("button", { name: "Show what is stored" }).click();
    expect(await seconds.inputValue()).toBe("500");
    expect(problems).toEqual([]);
    await close();
  });

  test("end the tenant once its short name is typed, say when, and restore it", async () => {
    const tenant = await world.tenant();
    const { page, problems, close } = await signedIn(tenant.ownerId, "/settings");
    await page.getByRole("button", { name: "Delete the tenant" }).click();
    const slug = tenant.ownerId.replace("owner-", "t-");
    await page.getByLabel(`Type ${slug} to confirm`).fill(slug);
    await page.getByRole("dialog").getByRole("button", { name: "Delete the tenant" }).click();
    await page.getByText("This tenant will be deleted for good on").waitFor();
    await page.getByRole("button", { name: "Restore the tenant" }).click();
    await page.getByRole("button", { name: "Delete the tenant" }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  test("run a load test, show its progress, and end it early", async () => {
    const tenant = await world.tenant();
    const { page, problems, close } = await signedIn(tenant.ownerId, "/settings");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByRole("progressbar", { name: "Load test" }).waitFor();
    await page.getByRole("button", { name: "Cancel the test" }).click();
    await page.getByText("canceled", { exact: true }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});
