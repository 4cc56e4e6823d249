// The screen of security: what looks like an attack is seen, looked at, blocked and unblocked, with real calls behind it.
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { accessFindings, findingsInEveryLook, type Visitor } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { type Answer, asKey, type TestTenant } from "../kit/gateway/world.ts";
import { filterBy, tokensOf } from "./stage.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let visitor: Visitor;
const call = async (method: string, path: string, body?: object, of = tenant): Promise<Answer["body"]> =>
  (await world.call(await of.user(), method, `/v1${path}`, body === undefined ? {} : { body })).body?.data;

beforeAll(async () => {
  tenant = await world.tenant();
  visitor = await chromium.visitor();
  await visitor.signIn(tenant.ownerId, { path: "/security" });
});
beforeEach(async () => void (await visitor.page.goto("/security", { waitUntil: "domcontentloaded" })));
afterEach(() => expect(visitor.problems).toEqual([]));

let addresses = 0;
/** Each from an address of its own: whoever fails too often is asked to wait. */
const newKey = async (of = tenant) => {
  addresses += 1;
  const headers = { "x-forwarded-for": `203.0.113.${addresses}` };
  const { apiKey, keyId } = await call("POST", "/api-keys", { name: HOSTILE }, of);
  const as = asKey(apiKey, of.tenantId);
  return { keyId, status: async (): Promise<number> => (await world.call(as, "GET", "/v1/devices", { headers })).status };
};
/** A revoked key that goes on calling, until the gateway has noticed. */
const raiseAlert = async (of = tenant) => {
  const key = await newKey(of);
  await call("DELETE", `/api-keys/${key.keyId}`, undefined, of);
  for (let calls = 0; calls < 24; calls += 1) await key.status();
  const alert: { readonly id: string } = await eventually(async () => {
    const found = (await call("GET", "/security/alerts", undefined, of)).find(({ entityId }: { entityId: string }) => entityId === key.keyId);
    if (found === undefined) throw new Error("no alert yet");
    return found;
  }, 30_000);
  return { ...key, alertId: alert.id };
};
/** One for all who only look at it, in a tenant of its own. */
const raiseStanding = async () => {
  const of = await world.tenant();
  const { keyId, alertId } = await raiseAlert(of);
  await call("POST", "/security/blocked-entities", { entityType: "key", entityValue: keyId, reason: HOSTILE }, of);
  return { of, alertId };
};
let standing: ReturnType<typeof raiseStanding> | undefined;
const standingAlert = () => {
  standing ??= raiseStanding();
  return standing;
};
const dialog = () => visitor.page.getByRole("dialog");
const grid = (name: string) => visitor.page.getByRole("grid", { name });

describe("an alert", () => {
  test("of a revoked key that goes on calling appears by itself, leads to its events, is acknowledged and resolved", { timeout: 60_000 }, async () => {
    const { page } = visitor;
    await page.getByText("Nothing looked like an attack.").waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    const { alertId, keyId } = await raiseAlert();
    await grid("Alerts").getByText("Credentials were refused again and again.").click();
    const panel = page.getByRole("region", { name: "Credentials were refused again and again." });
    await panel.getByRole("link", { name: keyId }).waitFor();
    await page.getByRole("link", { name: "Alerts to look at 1" }).waitFor();
    expect(await accessFindings(page)).toEqual([]);
    await panel.getByRole("button", { name: "Acknowledge" }).click();
    await panel.getByRole("list", { name: "History" }).getByText("acknowledged").waitFor();
    await panel.getByRole("button", { name: "Resolve" }).click();
    await dialog().getByLabel("What it was").selectOption("False positive");
    await dialog().getByLabel("Note").fill(HOSTILE);
    await dialog().getByRole("button", { name: "Resolve" }).click();
    await panel.getByRole("list", { name: "History" }).getByText("False positive").waitFor();
    expect(await call("GET", `/security/alerts/${alertId}`)).toMatchObject({ status: "resolved", resolution: "false_positive", note: HOSTILE });
    await panel.getByRole("link", { name: "Its events" }).click();
    await grid("Events").getByRole("link", { name: keyId }).first().waitFor();
    expect([...(await tokensOf(page)), await page.getByRole("combobox", { name: "Filter events" }).inputValue()]).toEqual(["type:auth.failed_burst", keyId]);
    await filterBy(page, "Filter events", "nobody");
    await page.getByText("Nothing matches these filters.").waitFor();
  });
});

describe("a key", () => {
  test("that is blocked here is refused, and works again once it is unblocked here", { timeout: 60_000 }, async () => {
    const { page } = visitor;
    const { keyId, status } = await newKey();
    expect(await status()).toBe(200);
    await visitor.go("/security?tab=blocked");
    await page.getByRole("button", { name: "Block" }).click();
    await dialog().getByLabel("What").selectOption("API key");
    await dialog().getByLabel("Value").fill(keyId);
    await dialog().getByLabel("Reason").fill(HOSTILE);
    expect(await accessFindings(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Block" }).click();
    await grid("Blocked").getByText(HOSTILE).waitFor();
    await eventually(async () => expect(await status()).toBe(403));
    expect(await page.evaluate("document.querySelectorAll('img').length")).toBe(0);
    expect((await call("GET", "/security/blocked-entities"))[0].expiresAt).not.toBeNull();

    await page.getByRole("button", { name: `Unblock ${keyId}` }).click();
    await page.getByRole("heading", { name: `Unblock ${keyId}?` }).waitFor();
    await dialog().getByRole("button", { name: "Unblock" }).click();
    await page.getByText("Nobody is blocked.").waitFor();
    await eventually(async () => expect(await status()).toBe(200));
  });
});

describe("a rule", () => {
  test("of one's own is created, changed and deleted, and a built-in one is turned off", { timeout: 60_000 }, async () => {
    const { page } = visitor;
    await visitor.go("/security?tab=rules");
    await page.getByRole("button", { name: "Create a rule" }).click();
    await dialog().getByLabel("Name").fill(HOSTILE);
    await dialog().getByLabel("Type of event").selectOption("A device's secrets were read.");
    await dialog().getByLabel("Events about the same").fill("7");
    await dialog().getByLabel("It blocks").selectOption("user");
    expect(await accessFindings(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Create a rule" }).click();
    await dialog().waitFor({ state: "detached" });
    const row = grid("Rules").getByRole("row").filter({ hasText: HOSTILE });
    await row.getByText("7 within 5 min").waitFor();
    await row.getByText("medium alert, blocks the user for 1 h").click();
    await dialog().getByLabel("It blocks").selectOption("nobody");
    await dialog().getByRole("button", { name: "Save" }).click();
    await row.getByText("medium alert", { exact: true }).click();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: `Delete ${HOSTILE}?` }).waitFor();
    await dialog().last().getByRole("button", { name: "Delete" }).click();
    await row.waitFor({ state: "detached" });
    await dialog().first().waitFor({ state: "detached" });

    const builtIn = grid("Rules").getByRole("row").filter({ hasText: "pairing.bruteforce" });
    await builtIn.click();
    await dialog().getByRole("checkbox", { name: "Is on" }).uncheck();
    expect(await dialog().getByRole("button", { name: "Delete" }).count()).toBe(0);
    await dialog().getByRole("button", { name: "Save" }).click();
    await builtIn.getByText("off", { exact: true }).waitFor();
    const { items } = await call("GET", "/security/rules").then((data) => (Array.isArray(data) ? { items: data } : data));
    expect(items.find(({ type, builtIn: is }: { type: string; builtIn: boolean }) => is && type === "pairing.bruteforce").enabled).toBe(false);
  });
});

test("an open alert, the events and who is blocked are without a finding in every look", { timeout: 120_000 }, async () => {
  const { of, alertId } = await standingAlert();
  const { page, problems, signIn, go, close } = await chromium.visitor();
  await signIn(of.ownerId, { path: "/security" });
  for (const path of [`/security?open=${alertId}`, "/security?tab=events", "/security?tab=rules&open=new", "/security?tab=blocked"]) {
    await go(path);
    await page.getByRole("grid").getByRole("gridcell").first().waitFor();
    expect(await findingsInEveryLook(page), path).toEqual([]);
  }
  expect(problems).toEqual([]);
  await close();
});

test("a viewer sees alerts and who is blocked without a way to change it, and nothing is refused", { timeout: 60_000 }, async () => {
  const { of, alertId } = await standingAlert();
  await of.token("viewer");
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(of.userId("viewer"), { path: `/security?open=${alertId}` });
  await page.getByRole("list", { name: "History" }).waitFor();
  await page.getByRole("link", { name: "Its rule" }).click();
  await page.getByRole("dialog").getByText("20 within 5 min").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Blocked", exact: true }).click();
  await page.getByRole("grid", { name: "Blocked" }).getByText(HOSTILE).waitFor();
  expect(await page.getByRole("button", { name: /Acknowledge|Resolve|Block|Create/ }).count()).toBe(0);
  expect(problems).toEqual([]);
  await close();
});
