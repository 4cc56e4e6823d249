// The page of a deployment: its change read as a diff before it is ordered, its revisions, its failures, and its end.
import { afterEach, describe, expect, test } from "vitest";
import { asOrdered, failureIn, openRig, type Rig, reportOf } from "../../features/apps/kit.ts";
import { accessFindings, scrollsSideways, type Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { eventually } from "../../kit/checks/eventually.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();
let rig: Rig | null = null;
let visitor: Visitor | null = null;
afterEach(async () => {
  await visitor?.close();
  await rig?.stop();
  [visitor, rig] = [null, null];
});

/** A deployment, and its page once it shows `state`. */
const open = async ({ tab = "steps", online = true, state = "active" } = {}) => {
  const made = await openRig(world, { online });
  rig = made;
  const { deploymentId } = await made.deploy({ name: "store" });
  const path = `/deployments/${deploymentId}`;
  if (online) await made.until(path, state);
  const seen = await chromium.visitor();
  visitor = seen;
  await seen.signIn(made.tenant.ownerId, { path: `${path}?tab=${tab}` });
  const { page, problems } = seen;
  const inState = (word: string) => page.locator("header").getByText(word, { exact: true });
  await inState(state).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const region = (name: string | RegExp) => page.getByRole("region", { name });
  return { rig: made, path, page, problems, button, region, inState, dialog: page.getByRole("dialog"), steps: page.getByRole("list", { name: "Steps" }) };
};

describe("a deployment", () => {
  test("shows what a change would do, value by value, and then deploys exactly that", async () => {
    const { page, button, region, rig: at, path, problems } = await open({ tab: "change" });
    await button("Show what would change").click();
    await region("What would change").getByText("Nothing would change.").waitFor();
    await page.getByLabel("Keys").fill("7");
    await button("Show what would change").click();
    await region("What would change").getByText("The app would be updated to revision 2.").waitFor();
    await page.getByRole("row", { name: "maxKeys − 1000 + 7" }).waitFor();
    expect(await accessFindings(page)).toEqual([]);
    expect(at.orders).toHaveLength(1);
    await button("Deploy this").click();
    await page.getByText("It is on its way.").waitFor();
    await eventually(async () => expect(await at.ask(`GET ${path}`)).toMatchObject({ status: "active", currentRevision: 2, configuration: { maxKeys: 7 } }));
    await expect.poll(() => page.getByLabel("Keys").inputValue()).toBe("7");
    expect(problems).toEqual([]);
  });

  test("lists its revisions with what each changed, and rolls back to one", async () => {
    const { page, button, region, rig: at, path, problems } = await open({ tab: "revisions" });
    await at.ask(`POST ${path}/redeploy`, { configuration: { maxKeys: 7 } });
    const grid = page.getByRole("grid", { name: "Revisions" });
    await grid.getByRole("row", { name: /^2 active/ }).click();
    await region("Revision 2").getByRole("row", { name: "maxKeys − 1000 + 7" }).waitFor();
    expect(await button("Roll back to revision 2").count()).toBe(0);
    expect(await accessFindings(page)).toEqual([]);
    await grid.getByRole("row", { name: /^1 / }).click();
    await region("Revision 1").getByRole("row", { name: "maxKeys + 1000" }).waitFor();
    await button("Roll back to revision 1").click();
    await grid.getByRole("row", { name: /^3 active/ }).waitFor();
    expect(await at.ask(`GET ${path}`)).toMatchObject({ configuration: { maxKeys: 1_000 } });
    await grid.getByRole("row", { name: /^3 active/ }).click();
    await region("Revision 3").getByRole("row", { name: "maxKeys − 7 + 1000" }).waitFor();
    expect(problems).toEqual([]);
  });

  test("whose update fails says why, and that the revision before runs again", async () => {
    const { page, button, region, rig: at, steps, inState, problems } = await open();
    at.answer(({ app }) => reportOf(app.appId, { revision: 1, failure: failureIn(app.revision, { lines: ["starting", HOSTILE] }) }));
    await button("Deploy again").click();
    await region("Revision 2 failed in its health check").getByText("health check failed").waitFor();
    await region("Last lines of its log").getByText(HOSTILE).waitFor();
    await steps.getByText("rolling back").waitFor();
    await inState("active").waitFor();
    await page.getByText("Active revision").waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await accessFindings(page)).toEqual([]);
    at.answer(asOrdered);
    await button("Deploy again").click();
    await region("Last lines of its log").waitFor({ state: "detached" });
    expect(problems).toEqual([]);
  });

  test("that failed is stopped or deployed again, and offers nothing that its state does not allow", async () => {
    const { button, rig: at, inState } = await open();
    at.answer(({ app }) =>
      reportOf(app.appId, { state: "failed", revision: 2, failure: failureIn(app.revision, { stage: "starting", reason: "PORT_TAKEN" }) }),
    );
    expect(await button("Roll back").count()).toBe(0);
    await button("Deploy again").click();
    await inState("failed").waitFor();
    expect(await button("Cancel the deployment").count()).toBe(0);
    at.answer(asOrdered);
    await button("Stop").click();
    await inState("stopped").waitFor();
    expect(await button("Roll back").count()).toBe(0);
    at.answer(({ app }) => reportOf(app.appId, { state: "failed", revision: 2, failure: failureIn(app.revision) }));
    await button("Start").click();
    await inState("failed").waitFor();
    at.answer(asOrdered);
    await button("Roll back").click();
    await inState("active").waitFor();
    expect(at.orders.at(-1)).toMatchObject({ verb: "deploy", app: { revision: 3 } });
  });

  test("says what it waits for, and is cancelled while its device is away", async () => {
    const { page, button, dialog, region, inState } = await open({ online: false, state: "queued" });
    await region("Waiting for the device to connect").waitFor();
    expect(await accessFindings(page)).toEqual([]);
    await button("Cancel the deployment").click();
    await dialog.getByRole("button", { name: "Cancel the deployment" }).click();
    await inState("cancelled").waitFor();
  });

  test("is deleted with its app and, if somebody wants that, without the app's data", async () => {
    const { page, button, dialog, rig: at } = await open();
    await button("Delete the deployment").click();
    await dialog.getByLabel("Type store to confirm").fill("store");
    await dialog.getByRole("button", { name: "Delete the deployment" }).click();
    await page.getByRole("heading", { name: "Deployments", level: 1 }).waitFor();
    await page.getByRole("grid", { name: "Deployments" }).getByText("store", { exact: true }).waitFor({ state: "detached" });
    expect(at.orders.at(-1)).toMatchObject({ verb: "remove", app: { keepVolumes: false } });
  });

  test("that groups devices has no app, and is not offered what an app needs", async () => {
    const { page, rig: at, button } = await open();
    await page.goto("/deployments", { waitUntil: "domcontentloaded" });
    await page.getByRole("grid", { name: "Deployments" }).getByText("group of devices").click();
    await page.getByText("New devices join it.").waitFor();
    for (const name of ["Stop", "Deploy again", "Delete the deployment"]) expect(await button(name).count()).toBe(0);
    expect(await accessFindings(page)).toEqual([]);
    expect(at.orders).toHaveLength(1);
  });

  test("offers a viewer its steps and revisions, and no change", async () => {
    const { rig: at, path } = await open();
    await at.tenant.token("viewer");
    const viewer = await chromium.visitor({ viewport: { width: 390, height: 844 }, colorScheme: "dark" });
    const { page } = viewer;
    await viewer.signIn(at.tenant.ownerId.replace("owner", "viewer"), { path: "/deployments?q=store" });
    await page.getByRole("grid", { name: "Deployments" }).getByText("store", { exact: true }).click();
    await page.getByRole("list", { name: "Steps" }).getByText("deploying").waitFor();
    for (const name of ["Stop", "Deploy again", "Roll back", "Delete the deployment"]) {
      expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
    }
    expect(await page.getByRole("link", { name: "Change", exact: true }).count()).toBe(0);
    await page.goto(`${path}?tab=revisions&revision=1`, { waitUntil: "domcontentloaded" });
    await page.getByRole("region", { name: "Revision 1" }).getByText("The first revision").waitFor();
    expect(await accessFindings(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    expect(viewer.problems).toEqual([]);
    await viewer.close();
  });
});

test("a pasted id leads to its app or deployment, and the list is filtered by the URL", async () => {
  const { page, rig: at, path, problems } = await open();
  const { appId } = await at.ask(`GET ${path}`);
  const goTo = async (id: string): Promise<void> => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Place, device or id" }).fill(id);
    await page.getByRole("option", { name: id }).waitFor();
    await page.keyboard.press("Enter");
  };
  await goTo(appId);
  await page.getByRole("heading", { name: "Key-value store" }).waitFor();
  await goTo(path.slice("/deployments/".length));
  await page.getByRole("heading", { name: "store" }).waitFor();
  await page.goto("/deployments?status=failed", { waitUntil: "domcontentloaded" });
  await page.getByText("No deployment matches these filters.").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByRole("grid", { name: "Deployments" }).getByText("store", { exact: true }).waitFor();
  expect(problems).toEqual([]);
});

test("another tenant's app and deployment are unknown", async () => {
  const { rig: at, path } = await open();
  const { appId } = await at.ask(`GET ${path}`);
  const stranger = await chromium.visitor();
  await stranger.signIn((await world.tenant()).ownerId, { path });
  await stranger.page.getByText("Unknown, or not yours.").waitFor();
  await stranger.page.goto(`/apps/${appId}?tab=logs`, { waitUntil: "domcontentloaded" });
  await stranger.page.getByText("Unknown, or not yours.").waitFor();
  expect(await stranger.page.content()).not.toContain("Key-value store");
  await stranger.close();
});
