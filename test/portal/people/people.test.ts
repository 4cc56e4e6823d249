// The people of a tenant in the browser: invites from both sides, roles, limits, and who leaves.
import { describe, expect } from "vitest";
import { accessFindings, findingsInEveryLook, type Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { testOpening } from "../../kit/browser/opening.ts";
import { emailOf } from "../../kit/gateway/world.ts";

const { world, chromium } = await openConsole();
/** A tenant, and its owner in front of the console. */
const test = testOpening(async () => {
  const tenant = await world.tenant();
  const owner = await chromium.visitor();
  const invite = async (userId: string): Promise<string> => {
    const { status, body } = await world.call(await tenant.user(), "POST", "/v1/invites", { body: { email: emailOf(userId), roleId: "viewer" } });
    expect(status).toBe(201);
    return body.data.link.slice(world.url.length);
  };
  const asOwner = async (path: string) => {
    await owner.signIn(tenant.ownerId, { tenantId: tenant.tenantId, path });
    return owner.page;
  };
  const memberOf = (role: string): string => tenant.ownerId.replace("owner", role);
  return { tenant, owner, asOwner, memberOf, invite, close: owner.close };
});
/** Follows a sign-in link with a verified address. */
const signIn = async ({ page }: Visitor, userId: string, path: string): Promise<void> => {
  const { url } = await world.app.signInLink({ userId, email: emailOf(userId) });
  await page.goto(`${url}&return_to=${encodeURIComponent(path)}`, { waitUntil: "domcontentloaded" });
};
const newUser = (): string => `ann-${crypto.randomUUID()}`;

describe.concurrent("an invite", () => {
  test("is read before the sign-in, accepted after it, and shows the new member only the devices that she is limited to", async ({ open }) => {
    const { tenant, owner, asOwner } = await open();
    const ann = newUser();
    const [hers] = [await tenant.device(), await tenant.device()];
    await world.call(await tenant.user(), "PATCH", `/v1/devices/${hers.deviceId}`, { body: { name: "hers", tags: ["roof"] } });
    const page = await asOwner("/members?tab=invites");
    await page.getByRole("button", { name: "Invite people" }).click();
    await page.getByLabel("Email addresses").fill(emailOf(ann));
    await page.getByLabel("Only some").check();
    await page.getByRole("combobox", { name: "Tags" }).fill("roof");
    await page.getByRole("combobox", { name: "Tags" }).press("Enter");
    await page.getByRole("button", { name: "Invite", exact: true }).click();
    const link =
      (await page
        .getByRole("dialog")
        .getByRole("button", { name: /\/invite\?token=/ })
        .textContent()) ?? "";
    expect(await accessFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Done" }).click();

    const invited = await chromium.visitor();
    await invited.page.goto(link, { waitUntil: "domcontentloaded" });
    await invited.page.getByRole("heading", { name: /^Join Tenant/ }).waitFor();
    await invited.page.getByText("You become a viewer").waitFor();
    await invited.page.getByLabel("Link, or its token").waitFor();
    expect([await accessFindings(invited.page), invited.problems]).toEqual([[], []]);
    await signIn(invited, ann, link.slice(world.url.length));
    await invited.page.getByRole("button", { name: "Accept" }).click();
    await invited.page.getByRole("link", { name: "Devices" }).first().click();
    await invited.page.getByText("1 device", { exact: true }).waitFor();
    await invited.page.getByText("hers").waitFor();
    await page.getByRole("row", { name: new RegExp(`${emailOf(ann)}.*accepted.*roof`) }).waitFor();
    expect([invited.problems, owner.problems]).toEqual([[], []]);
    await invited.close();
  });

  test("to another address is refused with what to do", async ({ open }) => {
    const { invite } = await open();
    const link = await invite(newUser());
    const other = await chromium.visitor();
    await signIn(other, newUser(), link);
    await other.page.getByRole("button", { name: "Accept" }).click();
    await other.page.getByText("You are signed in with another address").waitFor();
    await other.page.getByRole("button", { name: "Sign in with another account" }).click();
    await other.page.getByLabel("Link, or its token").waitFor();
    await other.close();
  });

  test("that was revoked, has expired or was declined says so at its link", async ({ open }) => {
    const { asOwner, invite } = await open();
    const people = [newUser(), newUser(), newUser()] as const;
    const [revoked, expired, declined] = [await invite(people[0]), await invite(people[1]), await invite(people[2])];
    const page = await asOwner("/members?tab=invites");
    await page.getByRole("row", { name: new RegExp(emailOf(people[0])) }).click();
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog", { name: "Revoke this invite?" }).getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("row", { name: new RegExp(`${emailOf(people[0])}.*revoked`) }).waitFor();
    await world.sql.query("update invites set expires_at = now() - interval '1 minute' where email = $1", [emailOf(people[1])]);
    const { page: read, close } = await chromium.visitor();
    await read.goto(revoked, { waitUntil: "domcontentloaded" });
    await read.getByText("was revoked").waitFor();
    await read.goto(expired, { waitUntil: "domcontentloaded" });
    await read.getByText("has expired").waitFor();
    await read.goto(declined, { waitUntil: "domcontentloaded" });
    await read.getByRole("button", { name: "Decline" }).click();
    await read.getByRole("dialog").getByRole("button", { name: "Decline" }).click();
    await read.getByText("You have declined the invite.").waitFor();
    await read.reload({ waitUntil: "domcontentloaded" });
    await read.getByText("has been answered").waitFor();
    await close();
  });
});

describe.concurrent("a member", () => {
  test("who gets another role may do more at once, without a reload", async ({ open }) => {
    const { tenant, owner, asOwner, memberOf } = await open();
    await tenant.user("viewer");
    const viewer = await chromium.visitor();
    await viewer.signIn(memberOf("viewer"), { tenantId: tenant.tenantId, path: "/members" });
    await viewer.page.getByRole("row", { name: /\(you\)/ }).waitFor();
    expect(await viewer.page.getByRole("button", { name: "Add", exact: true }).count()).toBe(0);
    const page = await asOwner("/members");
    await page.getByRole("row", { name: /viewer/ }).click();
    await page.getByLabel("Role").selectOption({ label: "Operator" });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /operator/ }).waitFor();
    await viewer.page.getByRole("button", { name: "Add", exact: true }).click();
    await viewer.page.getByRole("menuitem", { name: "Pair a device" }).waitFor();
    expect([viewer.problems, owner.problems]).toEqual([[], []]);
    await viewer.close();
  });

  test("who is the last owner cannot leave, and reads why", async ({ open }) => {
    const { asOwner } = await open();
    const page = await asOwner("/members");
    await page.getByRole("row", { name: /\(you\)/ }).click();
    await page.getByRole("button", { name: "Leave the tenant" }).click();
    await page.getByRole("dialog", { name: "Leave this tenant?" }).getByRole("button", { name: "Leave the tenant" }).click();
    await page.getByText("LAST_OWNER").waitFor();
    expect(await page.getByRole("alert").textContent()).toMatch(/owner/);
  });

  test("becomes the owner only after the owner typed the name, and the owner becomes an administrator", async ({ open }) => {
    const { tenant, asOwner, memberOf } = await open();
    await tenant.user("admin");
    const page = await asOwner("/members");
    await page.getByRole("row", { name: /admin/ }).click();
    await page.getByRole("button", { name: "Make owner" }).click();
    const question = page.getByRole("dialog", { name: "Transfer the ownership?" });
    expect(await question.getByRole("button", { name: "Make owner" }).isDisabled()).toBe(true);
    await question.getByLabel(/^Type .* to confirm/).fill(memberOf("admin"));
    await question.getByRole("button", { name: "Make owner" }).click();
    await page.getByRole("row", { name: new RegExp(`${memberOf("admin")}.*owner`) }).waitFor();
    await page.getByRole("row", { name: /\(you\).*admin/ }).waitFor();
  });
});

describe.concurrent("a role", () => {
  test("of one's own is created, changed and deleted; a permission that the caller lacks is refused readably", async ({ open }) => {
    const { tenant, memberOf } = await open();
    await tenant.user("admin");
    const admin = await chromium.visitor();
    await admin.signIn(memberOf("admin"), { tenantId: tenant.tenantId, path: "/members?tab=roles" });
    const { page } = admin;
    await page.getByRole("button", { name: "Create role" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("Installer");
    await dialog.locator('input[value="device:pair"]').check();
    await dialog.locator('input[value="tenant:delete"]').check();
    await dialog.getByRole("button", { name: "Create role" }).click();
    await dialog.getByText("PRIVILEGE_ESCALATION").waitFor();
    await dialog.locator('input[value="tenant:delete"]').uncheck();
    await dialog.getByRole("button", { name: "Create role" }).click();
    await page.getByRole("row", { name: /Installer own 0 1/ }).click();
    await page.getByRole("dialog").locator('input[value="device:read"]').check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /Installer own 0 2/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog", { name: "Delete the role Installer?" }).getByRole("button", { name: "Delete" }).click();
    await page.getByRole("row", { name: /Installer/ }).waitFor({ state: "detached" });
    await admin.close();
  });
});

describe.concurrent("a person without a tenant", () => {
  test("finds out why there is nothing to see, and creates a tenant", async () => {
    const stranger = await chromium.visitor();
    await signIn(stranger, newUser(), "/devices");
    const { page } = stranger;
    await page.getByRole("heading", { name: "You are in no tenant" }).waitFor();
    expect(await accessFindings(page)).toEqual([]);
    const name = `Café ${crypto.randomUUID().slice(0, 8)}`;
    await page.getByLabel("Name", { exact: true }).fill(name);
    expect(await page.getByLabel("Short name").inputValue()).toMatch(/^cafe-[0-9a-f]{8}$/);
    await page.getByRole("button", { name: "Create tenant" }).click();
    await page.getByText("Devices appear here once they are paired.").waitFor();
    expect(stranger.problems).toEqual([]);
    await stranger.close();
  });

  test("who acts with an access token is out of it after the sign-out", async () => {
    const { token } = await world.app.mint({ userId: newUser(), ttlSeconds: 600 });
    const stranger = await chromium.visitor();
    await stranger.context.addInitScript(
      `if (sessionStorage.getItem("pasted") === null) { sessionStorage.setItem("pasted", "once"); sessionStorage.setItem("mooring.token", ${JSON.stringify(token)}); }`,
    );
    const { page } = stranger;
    await page.goto("/devices", { waitUntil: "domcontentloaded" });
    await page.getByRole("heading", { name: "You are in no tenant" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto("/devices", { waitUntil: "domcontentloaded" });
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await stranger.close();
  });
});

test.concurrent("the lists and the forms are easy to use for everybody in every look", { timeout: 120_000 }, async ({ open }) => {
  const { owner, asOwner, invite } = await open();
  await invite(newUser());
  const page = await asOwner("/members");
  const check = async (): Promise<void> => expect([await findingsInEveryLook(page), owner.problems]).toEqual([[], []]);
  await page.getByRole("row", { name: /\(you\)/ }).click();
  await page.getByLabel("Only some").check();
  await page.getByRole("combobox", { name: "Devices" }).waitFor();
  await check();
  for (const [path, heading] of [
    ["/members?tab=invites", "pending"],
    ["/members?tab=roles", "Operator"],
    ["/members?tab=roles&open=new", "Create role"],
  ] as const) {
    await owner.go(path);
    await page.getByText(heading).first().waitFor();
    await check();
  }
});
