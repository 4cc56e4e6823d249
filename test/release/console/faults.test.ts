// Each call of a page fails, one after the other: its own panel says so, and everything else is there.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRig, type Rig } from "../../features/apps/kit.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { ERRORS, refusal, type Status } from "../../kit/browser/refusals.ts";
import { createLogger, line } from "../../portal/workloads/logger.ts";

const { world, chromium } = await openConsole();
let rig: Rig;
let app: string;
beforeAll(async () => {
  const logger = createLogger(world, [line("listening")]);
  rig = await openRig(world, { handlers: logger.handlers });
  const { deploymentId } = await rig.deploy({ name: "store" });
  app = `/apps/${(await rig.until(`/deployments/${deploymentId}`, "active")).appId}`;
});
afterAll(async () => {
  await rig?.stop();
});

/** The procedures that a page calls, and a way to let one fail from now on. */
const watchCalls = async (page: Page) => {
  const called = new Set<string>();
  let failing: readonly [string, Status] | null = null;
  await page.route(/\/trpc\/(?!live|apps\.followLogs)/, async (route) => {
    const paths = new URL(route.request().url()).pathname.slice("/trpc/".length).split(",");
    if (route.request().method() !== "GET") return route.continue();
    for (const path of paths) called.add(path);
    if (failing === null || !paths.includes(failing[0])) return route.continue();
    const [name, status] = failing;
    const response = await route.fetch();
    const answers: unknown[] = [await response.json()].flat();
    return route.fulfill({ response, json: answers.map((answer, at) => (paths[at] === name ? refusal(name, status) : answer)) });
  });
  return {
    called,
    fail: (next: readonly [string, Status] | null) => {
      failing = next;
    },
  };
};
/** A part of a panel that is only there with what it shows. */
const CONTENT: Readonly<Record<string, string>> = { "apps.logs": "Last lines" };
/** What the frame calls: without these it has words that fit everybody, or stands as a whole for the page that cannot begin. */
const OF_FRAME = /^(general|account)\./;
const regionsOf = (page: Page): Promise<readonly string[]> =>
  page
    .getByRole("main")
    .getByRole("region")
    .evaluateAll((all) => all.map((each) => each.getAttribute("aria-label") ?? "").filter((name) => name !== ""));

test.each([
  ["a device", () => `/devices/${rig.device.deviceId}`, "devices.get"],
  ["an app", () => app, "apps.get"],
])("each call of the page of %s fails by itself", { timeout: 120_000 }, async (_, path, subject) => {
  const { page, problems, signIn, close } = await chromium.visitor();
  const calls = await watchCalls(page);
  await signIn(rig.tenant.ownerId, { path: path() });
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  await page.locator("[data-skeleton]").first().waitFor({ state: "detached" });
  const regions = await regionsOf(page);
  expect(regions.length).toBeGreaterThan(3);
  const procedures = [...calls.called].filter((name) => !OF_FRAME.test(name));
  const silent: string[] = [];
  for (const [at, name] of procedures.entries()) {
    const status: Status = at % 2 === 0 ? 503 : 429;
    calls.fail([name, status]);
    await page.reload({ waitUntil: "domcontentloaded" });
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Devices" }).waitFor();
    const said = page.getByRole("alert").filter({ hasText: ERRORS[status].code });
    await said
      .first()
      .waitFor({ timeout: 20_000 })
      .catch(() => silent.push(`${name} fails without a word`));
    await page
      .locator("[data-skeleton]")
      .first()
      .waitFor({ state: "detached" })
      .catch(() => silent.push(`${name} leaves a part of the page unread`));
    if ((await page.getByRole("heading", { level: 1 }).count()) !== 1) silent.push(`${name} takes the heading away`);
    const left = await regionsOf(page);
    const gone = regions.filter((region) => !left.includes(region) && region !== CONTENT[name]);
    if (name !== subject && gone.length > 0) silent.push(`${name} takes ${gone} away`);
  }
  expect(silent).toEqual([]);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  expect(problems.filter(({ kind }) => kind === "error" || kind === "policy")).toEqual([]);
  await close();
});

test("a form whose call is refused keeps what was typed, and sends it once the gateway answers", async () => {
  const { page, signIn, close } = await chromium.visitor();
  let status: Status | null = 503;
  await page.route(/\/trpc\/[^?]*apiKeys\.create/, (route) =>
    status === null ? route.continue() : route.fulfill({ status, json: [refusal("apiKeys.create", status)] }),
  );
  await signIn(rig.tenant.ownerId, { path: "/keys" });
  await page.getByRole("button", { name: "Create a key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Kept");
  for (const next of [429, null] as const) {
    await dialog.getByRole("button", { name: "Create a key" }).click();
    await dialog.getByText(ERRORS[status ?? 503].code).waitFor();
    expect(await dialog.getByLabel("Name").inputValue()).toBe("Kept");
    status = next;
  }
  await dialog.getByRole("button", { name: "Create a key" }).click();
  await dialog.getByRole("button", { name: "I have copied it" }).click();
  await page.getByRole("grid", { name: "API keys" }).getByText("Kept").waitFor();
  await close();
});
