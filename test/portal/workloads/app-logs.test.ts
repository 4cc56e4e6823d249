// The log of an app in the console: its end, what comes, and what a person does with it.
import { expect } from "vitest";
import { openRig } from "../../features/apps/kit.ts";
import { accessFindings } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { testOpening } from "../../kit/browser/opening.ts";
import { ERRORS, refusal } from "../../kit/browser/refusals.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { createLogger, type Line, line } from "./logger.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();

const test = testOpening(async (tail: readonly Line[], path: (deployment: { appId: string; deploymentId: string }) => string) => {
  const logger = createLogger(world, tail);
  const made = await openRig(world, { handlers: logger.handlers });
  const { deploymentId } = await made.deploy({ name: "store" });
  const { appId } = await made.until(`/deployments/${deploymentId}`, "active");
  const seen = await chromium.visitor();
  await seen.signIn(made.tenant.ownerId, { path: path({ appId, deploymentId }) });
  const { page, problems } = seen;
  await page.getByText("live", { exact: true }).waitFor();
  const lines = page.getByRole("region", { name: "Lines of the log" });
  return { rig: made, page, problems, lines, write: logger.write, close: () => seen.close().then(made.stop) };
});

test.concurrent("a log shows its end and follows what comes, as text", async ({ open }) => {
  const { page, lines, write, problems } = await open([line("listening"), line(HOSTILE, "stderr")], ({ appId }) => `/apps/${appId}?tab=logs`);
  await lines.getByText("listening").waitFor();
  await lines.getByText(HOSTILE).waitFor();
  await write(line("GET /first 200"));
  await lines.getByText("GET /first 200").waitFor();
  expect(await lines.locator("[data-stream]").allTextContents()).toHaveLength(3);
  expect(await page.locator("img").count()).toBe(0);
  expect(await accessFindings(page)).toEqual([]);
  expect(problems).toEqual([]);
});

test.concurrent("a paused log stands still, counts what comes meanwhile, and has it when it goes on", async ({ open }) => {
  const { page, lines, write } = await open([line("listening")], ({ deploymentId }) => `/deployments/${deploymentId}?tab=logs`);
  await lines.getByText("listening").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await write(line("GET /first 200"), line("GET /second 500", "stderr"));
  await page.getByText("2 new lines since").waitFor();
  expect(await lines.getByText("GET /first 200").count()).toBe(0);
  await page.getByRole("button", { name: "Go on" }).click();
  await lines.getByText("GET /second 500").waitFor();
  await page.getByRole("searchbox", { name: "Search" }).fill("SECOND");
  await page.getByText("1 of 3 lines").waitFor();
  expect(await lines.getByText("listening").count()).toBe(0);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save" }).click();
  expect((await saved).suggestedFilename()).toBe("store.log");
});

test.concurrent("a long log stays bounded, follows its end, and wraps its lines or not", async ({ open }) => {
  const { page, lines, write } = await open([line("oldest")], ({ appId }) => `/apps/${appId}?tab=logs`);
  await lines.getByText("oldest").waitFor();
  for (let part = 0; part < 5; part++) {
    await write(...Array.from({ length: 500 }, (_, at) => line(`${part * 500 + at} ${"long ".repeat(at === 499 ? 60 : 1)}`)));
  }
  // The last alone: to look through all 2,000 takes a second each time.
  await lines
    .locator("[data-stream]")
    .last()
    .filter({ hasText: /^\S+ 2499 / })
    .waitFor();
  expect(await lines.locator("[data-stream]").count()).toBe(2_000);
  expect(await lines.getByText("oldest").count()).toBe(0);
  expect(
    await page.evaluate(
      "(() => { const at = document.querySelector('[aria-label=\"Lines of the log\"]'); return at.scrollHeight - at.scrollTop - at.clientHeight; })()",
    ),
  ).toBeLessThan(30);
  const wide =
    "document.querySelector('[aria-label=\"Lines of the log\"]').scrollWidth > document.querySelector('[aria-label=\"Lines of the log\"]').clientWidth";
  expect(await page.evaluate(wide)).toBe(false);
  await page.getByRole("checkbox", { name: "Wrap lines" }).uncheck();
  expect(await page.evaluate(wide)).toBe(true);
});

test.concurrent("the log of an app whose device is away says so, and that is no failure", async () => {
  const made = await openRig(world, { online: false });
  const { appId } = await made.deploy();
  const { page, signIn, close } = await chromium.visitor();
  await signIn(made.tenant.ownerId, { path: `/apps/${appId}?tab=logs` });
  await page.getByText("New lines come when it is back.").or(page.getByText("The app is not on its device.")).first().waitFor();
  await page.getByText("No lines yet.").waitFor();
  expect(await page.getByRole("alert").count()).toBe(0);
  expect(await accessFindings(page)).toEqual([]);
  await close();
});

test.concurrent("a log whose end cannot be read says so, and still when lines follow", async ({ open }) => {
  const { page, lines, write } = await open([line("listening")], ({ appId }) => `/apps/${appId}?tab=logs`);
  await page.route(/\/trpc\/apps\.logs/, (route) => route.fulfill({ status: 503, json: [refusal("apps.logs", 503)] }));
  await page.reload();
  const said = page.getByRole("alert").filter({ hasText: ERRORS[503].code });
  await said.waitFor();
  await eventually(async () => {
    await write(line("GET /first 200"));
    await lines.getByText("GET /first 200").first().waitFor({ timeout: 1_000 });
  });
  expect(await said.count()).toBe(1);
});

test.concurrent("whoever may not read logs is offered none", async ({ open }) => {
  const { rig: made, page } = await open([line("listening")], ({ appId }) => `/apps/${appId}?tab=logs`);
  await page.getByRole("link", { name: "Logs" }).waitFor();
  await made.tenant.token("viewer");
  const viewer = await chromium.visitor();
  await viewer.signIn(made.tenant.ownerId.replace("owner", "viewer"), { path: new URL(page.url()).pathname });
  await viewer.page.getByRole("region", { name: "Steps" }).waitFor();
  expect(await viewer.page.getByRole("link", { name: "Logs" }).count()).toBe(0);
  await viewer.close();
});
