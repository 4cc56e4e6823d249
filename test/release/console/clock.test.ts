// Times on a browser whose clock is wrong, and a page that hears nothing for ten minutes.
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRig, type Rig } from "../../features/apps/kit.ts";
import { openConsole } from "../../kit/browser/console.ts";

const { world, chromium } = await openConsole();
let rig: Rig;
beforeAll(async () => {
  rig = await openRig(world);
  await rig.ask(`PATCH /devices/${rig.device.deviceId}`, { name: "attic" });
});
afterAll(async () => {
  await rig?.stop();
});

/** Leaves the page a way to cut its feed, which no later request brings back until the route is gone. */
const CUTTABLE = `{
  const all = [];
  window.EventSource = class extends EventSource { constructor(...given) { super(...given); all.push(this); } };
  window.cutFeed = () => all.forEach((each) => { each.close(); each.dispatchEvent(new Event("error")); });
}`;
const WRONG = "{ const right = Date.now.bind(Date); Date.now = () => right() + 3_600_000; }";

test.each([
  ["tells times as the gateway has them", true, /^seen (now|[\d.]+ s ago)/],
  ["would tell an hour too much if the gateway had not told it the time", false, /^seen (1 h|60 min)/],
])("a browser whose clock is an hour ahead %s", async (_, hears, shown) => {
  const { page, context, problems, signIn, close } = await chromium.visitor();
  await context.addInitScript(WRONG);
  if (!hears) await page.route(/live\.watch/, (route) => route.abort());
  await signIn(rig.tenant.ownerId, { path: `/devices/${rig.device.deviceId}` });
  await page.getByRole("heading", { name: "attic" }).waitFor();
  await page.getByText(shown).first().waitFor();
  expect(problems.filter(({ kind }) => kind !== "answer" && kind !== "console")).toEqual([]);
  await close();
});

test("a page whose feed is cut for ten minutes says since when, keeps what is typed, and is right again afterwards", async () => {
  const { page, context, problems, signIn, close } = await chromium.visitor();
  await page.clock.install();
  await context.addInitScript(CUTTABLE);
  await signIn(rig.tenant.ownerId, { path: "/keys" });
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Half typed");
  await page.route(/live\.watch/, (route) => route.abort());
  await page.evaluate("cutFeed()");
  await page.getByText(/^No news since /).waitFor();
  await page.clock.fastForward("10:00");
  await page.getByText(/10 min ago/).waitFor();
  await rig.ask("POST /api-keys", { name: "Made meanwhile", role: "viewer", expiresInDays: 5 });
  await page.unroute(/live\.watch/);
  await page.clock.runFor(60_000);
  await page.getByText(/^No news since /).waitFor({ state: "detached" });
  expect(await page.getByRole("dialog").getByLabel("Name").inputValue()).toBe("Half typed");
  await page.keyboard.press("Escape");
  await page.getByText("Made meanwhile").waitFor();
  expect(problems.filter(({ kind }) => kind === "error" || kind === "policy")).toEqual([]);
  await close();
});
