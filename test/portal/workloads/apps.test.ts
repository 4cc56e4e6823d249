// The page of an app, as a person goes through it: installed from a form, seen as it is, changed, stopped and removed.
import { describe, expect } from "vitest";
import { failureIn, openRig, type Rig, reportOf } from "../../features/apps/kit.ts";
import { accessFindings } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { layoutFindings } from "../../kit/browser/layout.ts";
import { testOpening } from "../../kit/browser/opening.ts";
import { eventually } from "../../kit/checks/eventually.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();

const openPage = async (path: (rig: Rig) => string | Promise<string>, { online = true } = {}) => {
  const opened = await openRig(world, { online });
  await opened.ask(`PATCH /devices/${opened.device.deviceId}`, { name: "attic" });
  const seen = await chromium.visitor();
  await seen.signIn(opened.tenant.ownerId, { path: await path(opened) });
  const { page, problems, go } = seen;
  await page.getByText("live", { exact: true }).waitFor();
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const region = (name: string | RegExp) => page.getByRole("region", { name });
  const [dialog, heading] = [page.getByRole("dialog"), page.getByRole("heading", { level: 1 })];
  const close = () => seen.close().then(opened.stop);
  return { rig: opened, page, problems, button, region, dialog, heading, go, close };
};
const test = testOpening(openPage);
/** An app that runs, and its page. */
const openApp = async (open: typeof openPage, tab = "history", deployed: object = {}) => {
  let app = "";
  const at = await open(async (made) => {
    const { deploymentId } = await made.deploy(deployed);
    app = (await made.until(`/deployments/${deploymentId}`, "active")).appId;
    return `/apps/${app}?tab=${tab}`;
  });
  const state = (word: string) => at.page.getByRole("banner").or(at.page.locator("header")).getByText(word, { exact: true });
  await state("healthy").waitFor();
  const choose = async (word: string): Promise<void> => {
    await at.page.getByRole("button", { name: "More actions" }).click();
    await at.page.getByRole("menuitem", { name: word }).click();
  };
  return { ...at, appId: app, state, choose };
};

describe.concurrent("an application", () => {
  test("is installed from its form, and its deployment becomes active on the page as it is", async ({ open }) => {
    const { page, heading, button, dialog, rig: at, problems } = await open(() => "/catalogue/key-value");
    await button("Install").click();
    await dialog.getByLabel("Name").fill(HOSTILE);
    expect(await dialog.getByLabel("Port").inputValue()).toBe("8701");
    await dialog.getByLabel("Keys").fill("42");
    await dialog.getByText("Leave it empty for a random value.").waitFor();
    expect(await accessFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Install" }).click();
    await heading.getByText(HOSTILE).waitFor();
    await page.locator("header").getByText("healthy", { exact: true }).waitFor();
    expect(at.orders).toMatchObject([{ verb: "deploy", app: { config: { port: 8_701, maxKeys: 42 } } }]);
    expect(await page.locator("img").count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test("shows each fault of its configuration at the field, and keeps what was typed", async ({ open }) => {
    const { page, button, dialog, rig: at } = await open(() => "/catalogue/postgresql");
    await button("Install").click();
    const email = dialog.getByLabel("E-mail", { exact: false }).first();
    await email.fill("ann@example.com");
    const [first, second] = [dialog.getByRole("spinbutton").nth(0), dialog.getByRole("spinbutton").nth(1)];
    await second.fill(await first.inputValue());
    await dialog.getByRole("button", { name: "Install" }).click();
    await dialog.getByText("The marked fields do not fit.").waitFor();
    const fault = await second.getAttribute("aria-describedby");
    await eventually(async () => expect(await second.getAttribute("aria-invalid")).toBe("true"));
    expect(await page.locator(`[id="${fault?.split(" ")[0]}"]`).textContent()).toMatch(/^is the number of /);
    expect(await page.evaluate("document.activeElement.name")).toBe(await second.getAttribute("name"));
    expect(await email.inputValue()).toBe("ann@example.com");
    expect(await accessFindings(page)).toEqual([]);
    await second.fill("18999");
    await dialog.getByRole("button", { name: "Install" }).click();
    await eventually(() => expect(at.orders[0]?.app.config).toMatchObject({ email: "ann@example.com", databasePort: 18_999 }));
  });

  test("goes to a device that is offline when it connects, and its page says so until then", async ({ open }) => {
    const { page, button, dialog, rig: at, region } = await open(() => "/catalogue/static-site", { online: false });
    await button("Install").click();
    await dialog.getByText("offline; it is installed when the device connects").waitFor();
    await dialog.getByLabel("Message").fill("two\nlines");
    await dialog.getByRole("button", { name: "Install" }).click();
    await region("Waiting for the device to connect").waitFor();
    await at.start();
    await page.locator("header").getByText("healthy", { exact: true }).waitFor();
    expect(at.orders[0]?.app.config).toMatchObject({ message: "two\nlines" });
  });
});

describe.concurrent("an app", () => {
  test("is stopped, started and restarted, each as its agent says so", async ({ open }) => {
    const { page, button, choose, state, rig: at, problems } = await openApp(open);
    await page.getByRole("list", { name: "Steps" }).getByText("installing").waitFor();
    expect(await button("Start").count()).toBe(0);
    await choose("Stop");
    await state("stopped").waitFor();
    await button("Start").click();
    await state("healthy").waitFor();
    await button("Restart").click();
    await page.getByRole("list", { name: "Steps" }).getByText("restarting").waitFor();
    await state("healthy").waitFor();
    expect(at.orders.map(({ verb }) => verb)).toEqual(["deploy", "stop", "start", "restart"]);
    expect(problems).toEqual([]);
  });

  test("shows where it differs from what should be while it does, and where it can be reached", async ({ open }) => {
    const { page, rig: at, appId, region, go } = await openApp(open, "overview");
    await page.getByRole("link", { name: /^Open http.*:8701\/$/ }).waitFor();
    const desired = await at.ask("GET /agent/desired-state", undefined, at.device.as);
    await at.report(desired.version, reportOf(appId, { state: "stopped" }));
    const drift = region("Not as it should be");
    await drift.getByText("stopped instead of running").waitFor();
    await drift.getByText("For", { exact: true }).waitFor();
    expect(await accessFindings(page)).toEqual([]);
    await go(`/devices/${at.device.deviceId}?tab=apps`);
    await page.getByRole("grid", { name: "Apps" }).getByText("drift").waitFor();
    await at.report(desired.version, reportOf(appId));
    await page.getByRole("grid", { name: "Apps" }).getByText("drift").waitFor({ state: "detached" });
  });

  test("that breaks shows the reason and the last lines of its log, as text", async ({ open }) => {
    const { page, rig: at, appId, state, region } = await openApp(open, "overview");
    const desired = await at.ask("GET /agent/desired-state", undefined, at.device.as);
    await at.report(
      desired.version,
      reportOf(appId, { state: "failed", failure: failureIn(1, { stage: "running", reason: "EXITED", lines: ["listening", HOSTILE] }) }),
    );
    await state("error").waitFor();
    const failure = region("Revision 1 failed while it ran");
    await failure.getByText("EXITED").waitFor();
    await failure.getByRole("region", { name: "Last lines of its log" }).getByText(HOSTILE).waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await accessFindings(page)).toEqual([]);
  });

  test("is updated with another configuration, and goes back to the one before", async ({ open }) => {
    const { page, button, dialog, rig: at, problems } = await openApp(open, "configuration");
    await page.getByLabel("Keys").fill("7");
    await page.getByRole("row", { name: "maxKeys − 1000 + 7" }).waitFor();
    await button("Apply").click();
    await page.getByText("It is on its way.").waitFor();
    await eventually(() => expect(at.orders.at(-1)?.app.config).toMatchObject({ maxKeys: 7 }));
    await page.getByRole("link", { name: "History" }).click();
    await page.getByLabel("Note").fill("before the holidays");
    await button("Take a snapshot").click();
    await page.getByRole("grid", { name: "Snapshots" }).getByText("before the holidays").waitFor();
    await page.getByRole("grid", { name: "Revisions" }).getByRole("row", { name: /^1 / }).click();
    await button("Roll back to revision 1").click();
    await dialog.getByRole("row", { name: "maxKeys − 7 + 1000" }).waitFor();
    await dialog.getByText("Its data stays on the device as it is.").waitFor();
    expect(await accessFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Roll back" }).click();
    await eventually(() => expect(at.orders.at(-1)?.app.config).toMatchObject({ maxKeys: 1_000 }));
    await dialog.waitFor({ state: "detached" });
    expect(problems).toEqual([]);
  });

  test("gets secrets that nobody sees, and is restarted with them", async ({ open }) => {
    const { page, button, rig: at, appId } = await openApp(open, "secrets");
    await page.getByText("It is set.").waitFor();
    await page.getByLabel("Token").fill("of-the-store-0123456789");
    await button("Set the secrets").click();
    await page.getByText("Stored.").waitFor();
    expect(await page.getByLabel("Token").inputValue()).toBe("");
    expect(await page.content()).not.toContain("of-the-store");
    await eventually(() => expect(at.orders.at(-1)).toMatchObject({ verb: "restart", app: { secretsVersion: 2 } }));
    expect(await at.ask(`GET /apps/${appId}/secrets`)).toEqual({ KV_TOKEN: "of-the-store-0123456789" });
  });

  test("goes with or without its data, after its name was typed", async ({ open }) => {
    const { page, choose, dialog, rig: at } = await openApp(open, "overview", { name: "store" });
    await choose("Remove the app");
    await dialog.getByText("Its data on the device goes with it.").waitFor();
    await dialog.getByRole("checkbox", { name: "Keep its data on the device" }).check();
    expect(await dialog.getByRole("button", { name: "Remove the app" }).isDisabled()).toBe(true);
    await dialog.getByLabel("Type store to confirm").fill("store");
    expect(await accessFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Remove the app" }).click();
    await page.getByText("Applications that you install on your devices appear here.").waitFor();
    expect(at.orders.at(-1)).toMatchObject({ verb: "remove", app: { keepVolumes: true } });
  });

  test("offers a viewer nothing that would be refused", async ({ open }) => {
    const { rig: at, appId } = await openApp(open);
    await at.tenant.token("viewer");
    const viewer = await chromium.visitor();
    const { page } = viewer;
    await page.setViewportSize({ width: 390, height: 844 });
    await viewer.signIn(at.tenant.ownerId.replace("owner", "viewer"), { path: "/apps" });
    await page.getByRole("grid", { name: "Apps" }).getByText("Key-value store").click();
    await page.getByRole("list", { name: "Steps" }).getByText("installing").waitFor();
    for (const name of ["More actions", "Restart", "Roll back", "Roll back to revision 1"])
      expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
    expect(await page.getByRole("link", { name: "Secrets" }).count()).toBe(0);
    await page.getByRole("link", { name: "Configuration" }).click();
    await page.getByRole("region", { name: "Values" }).getByText('"maxKeys": 1000').waitFor();
    expect(await accessFindings(page)).toEqual([]);
    expect(await layoutFindings(page)).toEqual([]);
    await viewer.go(`/catalogue/key-value`);
    await page.getByRole("heading", { name: "Key-value store" }).waitFor();
    expect(await page.getByRole("button", { name: "Install" }).count()).toBe(0);
    await viewer.go(`/apps/${appId}?tab=secrets`);
    await page.getByRole("list", { name: "Steps" }).waitFor();
    expect(viewer.problems).toEqual([]);
    await viewer.close();
  });
});
