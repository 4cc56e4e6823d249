// Data exports in the console: somebody chooses what a file holds, watches it being made, downloads it and deletes it.
import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { accessFindings, findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";

const { world, chromium } = await openConsole();

test("an export is chosen, made, downloaded and deleted", async () => {
  const tenant = await world.tenant();
  const device = await tenant.device();
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/exports" });
  await page.getByRole("button", { name: "Export data" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Format").selectOption("csv");
  await dialog.getByText("Choose exactly one part for a table.").waitFor();
  expect(await dialog.getByRole("button", { name: "Export", exact: true }).isDisabled()).toBe(true);
  await dialog.getByLabel("Format").selectOption("ndjson");
  await dialog.getByRole("checkbox", { name: "Devices", exact: true }).check();
  expect(await accessFindings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Export", exact: true }).click();
  const row = page.getByRole("row").filter({ hasText: "Devices" });
  // The event of its end, which the page hears, says so.
  await row.getByText("completed").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  const started = page.waitForEvent("download");
  await row.getByRole("button", { name: "Download" }).click();
  const file = await started;
  expect(file.suggestedFilename()).toMatch(/^exp_.*\.ndjson\.gz$/);
  expect(gunzipSync(await readFile(await file.path())).toString()).toContain(device.deviceId);
  await row.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No file holds secrets.").waitFor();
  expect(problems).toEqual([]);
  await close();
});
