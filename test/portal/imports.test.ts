// Imports in the console: somebody plans a file, reads what it would do, and carries it out.
import { expect, test } from "vitest";
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
