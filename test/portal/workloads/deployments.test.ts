// A deployment on the page of its app: its change read as a difference before it is ordered, its revisions, its failures, and its end.
import { describe, expect } from "vitest";
import { asOrdered, failureIn, openRig, reportOf } from "../../features/apps/kit.ts";
import { accessFindings } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { layoutFindings } from "../../kit/browser/layout.ts";
import { testOpening } from "../../kit/browser/opening.ts";
import { eventually } from "../../kit/checks/eventually.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();

/** A deployment, and the page that its address leads to once that shows `state`. */
const test = testOpening(async ({ search = "tab=overview", online = true, state = "healthy" } = {}) => {
  const made = await openRig(world, { online });
  const { deploymentId, appId } = await made.deploy({ name: "store" });
  const path = `/deployments/${deploymentId}`;
  if (online) await made.until(path, "active");
  const seen = await chromium.visitor();
  await seen.signIn(made.tenant.ownerId, { path: `${path}?${search}` });
  const { page, go } = seen;
  // The agent of these tests has no log.
  const problems = (): readonly unknown[] => seen.problems.filter(({ kind }) => kind !== "answer");
  const inState = (word: string) => page.locator("header").getByText(word, { exact: true });
  await inState(state).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const region = (name: string | RegExp) => page.getByRole("region", { name });
  const choose = async (word: string): Promise<void> => {
    await button("More actions").click();
    await page.getByRole("menuitem", { name: word }).click();
  };
  const [dialog, steps] = [page.getByRole("dialog"), page.getByRole("list", { name: "Steps" })];
  const close = () => seen.close().then(made.stop);
  return { rig: made, path, appId, page, problems, button, region, choose, inState, dialog, steps, go, close };
});

describe.concurrent("a deployment", () => {
  test("leads to its app: to its history, or to what an address of before named", async ({ open }) => {
    const { page, appId, go, path, region } = await open({ search: "tab=revisions&revision=1" });
    await region("Revision 1").getByText("The first revision").waitFor();
    expect(page.url()).toContain(`/apps/${appId}?tab=history&revision=`);
    await go(path);
    await page.getByRole("grid", { name: "Revisions" }).waitFor();
    expect(page.url()).toMatch(new RegExp(`/apps/${appId}.tab=history$`));
    await go(`${path}?tab=change`);
    await page.getByLabel("Keys").waitFor();
    expect(page.url()).toMatch(/\?tab=configuration$/);
  });

  test("shows what a change would do, keeps it on the way, and then deploys exactly that", async ({ open }) => {
    const { page, button, region, rig: at, path, problems } = await open({ search: "tab=configuration" });
    await page.getByLabel("Keys").fill("7");
    await page.getByRole("link", { name: "Overview" }).last().click();
    const pending = region("Change not applied yet");
    await pending.getByRole("row", { name: "maxKeys − 1000 + 7" }).waitFor();
    expect(await accessFindings(page)).toEqual([]);
    expect(at.orders).toHaveLength(1);
    await pending.getByRole("link", { name: "Edit" }).click();
    await eventually(async () => expect(await page.getByLabel("Keys").inputValue()).toBe("7"));
    await page.getByLabel("Keys").fill("1000");
    await eventually(async () => expect(await button("Apply").isDisabled()).toBe(true));
    await page.getByLabel("Keys").fill("8");
    await page.getByRole("link", { name: "Overview" }).last().click();
    await pending.getByRole("button", { name: "Apply" }).click();
    await pending.waitFor({ state: "detached" });
    await eventually(async () => expect(await at.ask(`GET ${path}`)).toMatchObject({ status: "active", currentRevision: 2, configuration: { maxKeys: 8 } }));
    expect(problems()).toEqual([]);
  });

  test("lists its revisions with what each changed and who made it, and rolls back to one", async ({ open }) => {
    const { page, button, dialog, region, rig: at, path, problems, go, appId } = await open({ search: "tab=history" });
    await at.ask(`POST ${path}/redeploy`, { configuration: { maxKeys: 7 } });
    const grid = page.getByRole("grid", { name: "Revisions" });
    await grid.getByRole("row", { name: /^2 now/ }).click();
    await region("Revision 2").getByRole("row", { name: "maxKeys − 1000 + 7" }).waitFor();
    expect(await button("Roll back to revision 2").count()).toBe(0);
    expect(await accessFindings(page)).toEqual([]);
    await grid.getByRole("row", { name: /^1 / }).click();
    await region("Revision 1").getByRole("row", { name: "maxKeys + 1000" }).waitFor();
    await button("Roll back to revision 1").click();
    await dialog.getByRole("row", { name: "maxKeys − 7 + 1000" }).waitFor();
    await dialog.getByText("Its data stays on the device as it is.").waitFor();
    await dialog.getByRole("button", { name: "Roll back" }).click();
    await grid.getByRole("row", { name: /^3 now/ }).waitFor();
    expect(await at.ask(`GET ${path}`)).toMatchObject({ configuration: { maxKeys: 1_000 } });
    await go(`/apps/${appId}`);
    const history = region("History");
    await history.getByText(/went back to 1/).waitFor();
    await history.getByText(/changed maxKeys/).waitFor();
    expect(await history.textContent()).not.toContain("user:");
    expect(problems()).toEqual([]);
  });

  test("whose update fails says why, and that the revision before runs again", async ({ open }) => {
    const { page, button, region, rig: at, path, inState, problems } = await open();
    at.answer(({ app }) => reportOf(app.appId, { revision: 1, failure: failureIn(app.revision, { lines: ["starting", HOSTILE] }) }));
    await at.ask(`POST ${path}/redeploy`, { configuration: { maxKeys: 7 } });
    const failure = region("Revision 2 failed in its health check");
    await failure.getByText("HEALTH_CHECK_FAILED").waitFor();
    await region("Last lines of its log").getByText(HOSTILE).waitFor();
    await inState("healthy").waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await accessFindings(page)).toEqual([]);
    at.answer(asOrdered);
    await button("Deploy again").click();
    await failure.waitFor({ state: "detached" });
    expect(problems()).toEqual([]);
  });

  test("that failed is stopped or deployed again, and offers nothing that its state does not allow", async ({ open }) => {
    const { button, choose, dialog, rig: at, path, inState, region } = await open();
    at.answer(({ app }) =>
      reportOf(app.appId, { state: "failed", revision: 2, failure: failureIn(app.revision, { stage: "starting", reason: "PORT_TAKEN" }) }),
    );
    await at.ask(`POST ${path}/redeploy`, { configuration: { maxKeys: 7 } });
    await inState("error").waitFor();
    expect(await button("Restart").count()).toBe(0);
    at.answer(asOrdered);
    await choose("Stop");
    await inState("stopped").waitFor();
    expect(await button("Roll back to revision 1").count()).toBe(0);
    expect(await button("Open").isDisabled()).toBe(true);
    at.answer(({ app }) => reportOf(app.appId, { state: "failed", revision: 2, failure: failureIn(app.revision) }));
    await button("Start").click();
    await inState("error").waitFor();
    at.answer(asOrdered);
    await region("History").getByRole("button", { name: "Roll back to revision 1" }).click();
    await dialog.getByRole("button", { name: "Roll back" }).click();
    await inState("healthy").waitFor();
    expect(at.orders.at(-1)).toMatchObject({ verb: "deploy", app: { revision: 3 } });
  });

  test("says what it waits for, is cancelled while its device is away, and keeps a page of its own until somebody deletes it", async ({ open }) => {
    const { page, path, appId, rig: at, go, choose, dialog, region, inState } = await open({ online: false, state: "pending" });
    await region("Waiting for the device to connect").waitFor();
    expect(await accessFindings(page)).toEqual([]);
    await choose("Cancel the installation");
    await dialog.getByRole("button", { name: "Cancel the installation" }).click();
    await inState("removing").waitFor();
    await at.start();
    await eventually(async () => expect(await at.refusal(`GET /apps/${appId}`)).toContain("APP_NOT_FOUND"));
    await go(path);
    await inState("cancelled").waitFor();
    await page.getByRole("list", { name: "Steps" }).waitFor();
    expect(await accessFindings(page)).toEqual([]);
    expect(await layoutFindings(page)).toEqual([]);
    await choose("Delete the deployment");
    await dialog.getByRole("button", { name: "Delete the deployment" }).click();
    await page.getByRole("grid", { name: "Deployments" }).waitFor();
    await page.getByRole("grid", { name: "Deployments" }).getByText("store", { exact: true }).waitFor({ state: "detached" });
  });

  test("that groups devices has no app, and is not offered what an app needs", async ({ open }) => {
    const { page, rig: at, button, go } = await open();
    await go("/deployments");
    await page.getByRole("grid", { name: "Deployments" }).getByText("group of devices").click();
    await page.getByText("New devices join it.").waitFor();
    for (const name of ["Restart", "Deploy again", "More actions"]) expect(await button(name).count()).toBe(0);
    expect(await accessFindings(page)).toEqual([]);
    expect(at.orders).toHaveLength(1);
  });

  test("offers a viewer its steps and revisions, and no change", async ({ open }) => {
    const { rig: at, path } = await open();
    await at.tenant.token("viewer");
    const viewer = await chromium.visitor();
    const { page } = viewer;
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: "dark" });
    await viewer.signIn(at.tenant.ownerId.replace("owner", "viewer"), { path: "/deployments?q=store" });
    await page.getByRole("grid", { name: "Deployments" }).getByText("store", { exact: true }).click();
    await page.getByRole("list", { name: "Steps" }).getByText("installing").waitFor();
    for (const name of ["More actions", "Restart", "Deploy again", "Roll back to revision 1"]) {
      expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
    }
    expect(await page.getByRole("link", { name: "Change", exact: true }).count()).toBe(0);
    await viewer.go(`${path}?tab=revisions&revision=1`);
    await page.getByRole("region", { name: "Revision 1" }).getByText("The first revision").waitFor();
    expect(await accessFindings(page)).toEqual([]);
    expect(await layoutFindings(page)).toEqual([]);
    expect(viewer.problems).toEqual([]);
    await viewer.close();
  });
});

test.concurrent("a pasted id leads to its app or deployment, and the list is filtered by the URL", async ({ open }) => {
  const { page, rig: at, path, problems, go } = await open();
  const { appId } = await at.ask(`GET ${path}`);
  const goTo = async (id: string): Promise<void> => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Place, device or id" }).fill(id);
    await page.getByRole("option", { name: id }).waitFor();
    await page.keyboard.press("Enter");
  };
  await goTo(appId);
  await page.getByRole("region", { name: "Addresses" }).waitFor();
  await goTo(path.slice("/deployments/".length));
  await page.getByRole("grid", { name: "Revisions" }).waitFor();
  await go("/deployments?status=failed");
  await page.getByText("No deployment matches these filters.").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByRole("grid", { name: "Deployments" }).getByText("store", { exact: true }).waitFor();
  expect(problems()).toEqual([]);
});

test.concurrent("another tenant's app and deployment are unknown", async ({ open }) => {
  const { rig: at, path } = await open();
  const { appId } = await at.ask(`GET ${path}`);
  const stranger = await chromium.visitor();
  await stranger.signIn((await world.tenant()).ownerId, { path });
  await stranger.page.getByText("Unknown, or not yours.").waitFor();
  await stranger.go(`/apps/${appId}?tab=logs`);
  await stranger.page.getByText("Unknown, or not yours.").waitFor();
  expect(await stranger.page.locator("main").textContent()).not.toContain("store");
  await stranger.close();
});
