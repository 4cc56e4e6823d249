// Imports in the console: somebody plans a file, reads what it would do, and carries it out.
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { documentOf } from "../features/imports/document.ts";
import { accessFindings, findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { askAs } from "../kit/gateway/ask.ts";

const { world, chromium } = await openConsole();
const DOCUMENT = `format: mooring-manifest/1
fleets:
  - name: lisbon
    selector: { tags: ["site:lisbon"] }
  - name: porto
    updatePolicyId: update-policy/none
`;

test("a manifest is planned as a table, carried out, and deleted", async () => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/imports" });
  await page.getByRole("button", { name: "Plan an import" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("File", { exact: true }).setInputFiles({ name: "tenant.yaml", mimeType: "application/yaml", buffer: Buffer.from(DOCUMENT) });
  expect(await accessFindings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Plan", exact: true }).click();
  await page.getByRole("row").filter({ hasText: "lisbon" }).getByText("create").waitFor();
  await page.getByRole("row").filter({ hasText: "porto" }).getByText("update-policy/none is neither here nor made by the import").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("button", { name: "Carry it out" }).click();
  await page.getByRole("dialog").getByText("1 to create, 1 refused").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Carry it out" }).click();
  await page.getByText("completed", { exact: true }).waitFor();
  expect((await askAs(world, owner, "GET", "/fleets")).map(({ name }: { name: string }) => name)).toEqual(["lisbon"]);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("You see its plan first.").waitFor();
  // What was being read when it was deleted is not found any more.
  expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await close();
});

test("the file of an export is sent in parts, and replaces what it lacks once its deletions are confirmed", async () => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const { fleetId } = await askAs(world, owner, "POST", "/fleets", { name: "old", selector: { tags: ["old"] } });
  // Noise does not compress, so the file has several parts.
  const noise = Array.from({ length: 36_000 }, (_none, at) => ({ name: createHash("sha512").update(`${at}`).digest("hex") }));
  const file = gzipSync(documentOf({ event: noise, fleet: [{ name: "new", selector: { tags: ["new"] } }] }));
  expect(file.length).toBeGreaterThan(2_097_152);
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/imports" });
  await page.getByRole("button", { name: "Plan an import" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("File", { exact: true }).setInputFiles({ name: "export.ndjson.gz", mimeType: "application/gzip", buffer: file });
  await dialog.getByRole("checkbox", { name: "Delete what the file lacks" }).check();
  expect(await accessFindings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Plan", exact: true }).click();
  await page.getByRole("row").filter({ hasText: "old" }).getByText("delete").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("button", { name: "Carry it out" }).click();
  await page.getByRole("dialog").getByText("1 to create, 1 to delete").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Carry it out" }).click();
  await page.getByText("completed", { exact: true }).waitFor();
  expect((await askAs(world, owner, "GET", "/fleets")).map(({ name }: { name: string }) => name)).toEqual(["new"]);
  expect((await world.call(owner, "GET", `/v1/fleets/${fleetId}`)).status).toBe(404);
  expect(problems).toEqual([]);
  await close();
});
