// Costs in the console: somebody enters rates, sees what machines cost and who, and watches it with a budget.
import { expect, test } from "vitest";
import { addDays } from "../../server/features/costs/days.ts";
import { addUp, openCosts, YESTERDAY } from "../features/costs/kit.ts";
import { accessFindings, findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { holdCalls } from "../kit/browser/hold-calls.ts";
import { eventually } from "../kit/checks/eventually.ts";

const { world, chromium } = await openConsole();
const DAYS = Array.from({ length: 40 }, (_, back) => addDays(YESTERDAY, -back));

test("rates are entered with one device worked out, and another version is made for a tag", async () => {
  const costs = await openCosts(world);
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(costs.tenant.ownerId, { path: "/cost" });
  const enter = page.getByRole("link", { name: "Enter rates" });
  await enter.waitFor();
  // The link stays while the page asks again, which it does every half a minute: a click between would be lost.
  const summary = await holdCalls(page, /costs\.summary/);
  // A read that was on its way before is not asked for twice.
  await eventually(async () => {
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    expect(summary.isHolding()).toBe(true);
  });
  expect(await enter.isVisible()).toBe(true);
  summary.release();
  await enter.click();
  await page.waitForURL(/tab=rates/);
  await page.getByRole("button", { name: "Enter rates" }).click();
  await page.getByLabel("Purchase").fill("240");
  await page.getByLabel("Watts idle").fill("6");
  await page.getByLabel("Watts under full load").fill("25");
  await page.getByLabel("A kilowatt-hour costs").fill("0,32");
  await page.getByText("€5.82").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("button", { name: "Save rates" }).click();
  await page.getByRole("button", { name: "Change rates" }).click();
  await page.getByRole("button", { name: "Rates for a tag" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Tag").fill("rented");
  await dialog.getByLabel("Fixed costs a month").fill("30");
  expect(await accessFindings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("button", { name: "rented" }).waitFor();
  await page.getByRole("button", { name: "Save rates" }).click();
  await page.getByRole("button", { name: "Change rates" }).waitFor();
  const { versions } = await costs.get("/costs/rates");
  expect(versions[0]).toMatchObject({
    version: 2,
    currency: "EUR",
    device: { purchase: 24_000, wattsMax: 25, kwhPrice: "0.32" },
    byTag: [{ tag: "rented", rates: { fixedMonthly: 3_000 } }],
  });
  expect(problems).toEqual([]);
  await close();
});

test("the month shows what it has cost and will, its days and who costs what; a budget is made, read and deleted", async () => {
  const costs = await openCosts(world);
  const [kitchen, attic] = [await costs.machine({ tags: ["site:porto"] }), await costs.machine({ tags: ["site:lisbon"] })];
  await world.sql.query("update devices set name = case device_id when $1 then 'kitchen' else 'attic' end where tenant_id = $2", [kitchen, costs.tenantId]);
  await costs.measured(kitchen, DAYS, 1_440, 20);
  await costs.measured(attic, DAYS, 900, 60);
  await costs.app(kitchen, { name: "notes" });
  await costs.rates({
    sharedMonthly: 900,
    validFrom: addDays(YESTERDAY, -39),
    device: { purchase: 24_000, wattsIdle: 6, wattsMax: 25, kwhPrice: "0.32", memoryGBHour: "0.002" },
  });
  await addUp(world);
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(costs.tenant.ownerId, { path: "/cost?window=30d" });
  await page.getByRole("row", { name: /kitchen/ }).waitFor();
  await page.getByRole("row", { name: /Shared by all/ }).waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByLabel("By").selectOption("app");
  await page.getByRole("row", { name: /Idle: used by no app/ }).waitFor();
  await page.getByRole("row", { name: /notes/ }).waitFor();
  await page.getByLabel("By").selectOption("tag:");
  await page.getByRole("row", { name: /site:porto/ }).waitFor();
  await page.getByLabel("Time").selectOption("month");
  await page.getByText("Expected").waitFor();
  await page.getByRole("link", { name: "Budgets" }).click();
  await page.getByRole("button", { name: "Create a budget" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Porto");
  await dialog.getByLabel("Amount a month").fill("0,01");
  await dialog.getByLabel("Watches").selectOption("tag");
  await dialog.getByLabel("Tag").fill("site:porto");
  expect(await accessFindings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Create a budget" }).click();
  const row = page.getByRole("row").filter({ hasText: "Porto" });
  await row.getByText(/100 % (reached|expected)/).waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await row.click();
  expect(await page.getByRole("dialog").getByLabel("Tell at").inputValue()).toBe("50 80 100");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog", { name: "Delete this budget?" }).getByRole("button", { name: "Delete" }).click();
  await page.getByText("A budget watches what a month costs").waitFor();
  expect(problems).toEqual([]);
  await close();
});
