// One device in the console: its commands from the composer to their end, what they wait for, and its settings.
import { describe, expect } from "vitest";
import { findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { testOpening } from "../kit/browser/opening.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { openStage } from "./stage.ts";

/** An observer is called before the browser does anything else, so nobody presses a key sooner. */
const PRESS_AGAIN_ONCE_CLOSED = `{
  const observer = new MutationObserver(() => {
    if (document.querySelector('section[aria-label="ping"]') !== null) return;
    observer.disconnect();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  });
  observer.observe(document.body, { childList: true, subtree: true });
}`;
const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();

const openPage = async (path: (deviceId: string) => string = (id) => `/devices/${id}`, options: { name?: string } = {}) => {
  const stage = await openStage(world, chromium, path, options);
  const { page } = stage.visitor;
  const panel = (type: string) => page.getByRole("region", { name: type, exact: true });
  const composer = page.getByRole("dialog");
  return { ...stage, page, panel, composer };
};
type Opened = Awaited<ReturnType<typeof openPage>>;
const test = testOpening(openPage);

const compose = async ({ page, composer }: Opened, type: string): Promise<void> => {
  await page.getByRole("button", { name: "Send a command" }).click();
  await composer.getByLabel("Type").fill(type);
};
const send = ({ composer }: Opened) => composer.getByRole("button", { name: "Send", exact: true });
const wordOf = ({ panel }: Opened, type: string, status: string) => panel(type).getByText(status, { exact: true }).first();

describe.concurrent("a command", () => {
  test("goes from the composer to succeeded on the page as it is", async ({ open }) => {
    const at = await open();
    const gate = at.connect();
    await at.page.getByText("online", { exact: true }).waitFor();
    await compose(at, "work");
    await at.composer.getByLabel("Payload (JSON)").fill('{"note": "first"}');
    await send(at).click();
    await at.panel("work").getByText("Running on the device").waitFor();
    await at.panel("work").getByText("two of five").waitFor();
    gate.open();
    await wordOf(at, "work", "succeeded").waitFor();
    await at.panel("work").getByText('"worked": true').waitFor();
    await at.panel("work").getByText("attic").first().waitFor();
    expect(new URL(at.page.url()).searchParams.get("command")).toBe((await at.commands())[0]?.commandId);
    expect(at.visitor.problems).toEqual([]);
  });

  test("that waits for its lane shows the command ahead, and goes on when that has ended", async ({ open }) => {
    const at = await open();
    const gate = at.connect();
    const [ahead, behind] = [await at.queue({ type: "work", lane: "cellar" }), await at.queue({ type: "echo", lane: "cellar" })];
    await at.visitor.go(`/devices/${at.device.deviceId}?command=${behind}`);
    const waiting = at.page.getByRole("region", { name: "Waiting for its lane" });
    await waiting.getByText("Lane cellar is taken by").waitFor();
    await waiting.getByRole("link", { name: "work (running)" }).waitFor();
    gate.open();
    await wordOf(at, "echo", "succeeded").waitFor();
    expect(await waiting.count()).toBe(0);
    await at.visitor.go(`/devices/${at.device.deviceId}?command=${ahead}`);
    await wordOf(at, "work", "succeeded").waitFor();
  });

  test("for an offline device says what it waits for, before and after it is sent, and goes out when the device connects", async ({ open }) => {
    const at = await open();
    await compose(at, "ping");
    await at.composer.getByText("The device is offline.").waitFor();
    await at.composer.getByText("waits until the device connects, at most 1 h").waitFor();
    await send(at).click();
    await at.page.getByRole("region", { name: "Waiting for the device to connect" }).waitFor();
    at.connect();
    await wordOf(at, "ping", "succeeded").waitFor();
  });

  test("is refused for an offline device if the person wants that", async ({ open }) => {
    const at = await open();
    await compose(at, "ping");
    await at.composer.getByLabel("If the device is offline").selectOption("fail");
    await at.composer.getByText("The gateway refuses the command").waitFor();
    await send(at).click();
    await at.composer.getByText("DEVICE_OFFLINE").waitFor();
    expect(await at.commands()).toEqual([]);
  });

  test("is canceled at once while it waits, and by force while the agent has it", async ({ open }) => {
    const at = await open();
    const waiting = await at.queue();
    await at.visitor.go(`/devices/${at.device.deviceId}?command=${waiting}`);
    await at.page.getByRole("button", { name: "Cancel command" }).click();
    await at.page.getByRole("dialog").getByRole("button", { name: "Cancel command" }).click();
    await wordOf(at, "ping", "canceled").waitFor();
    at.connect();
    const running = await at.queue({ type: "work" });
    await at.visitor.go(`/devices/${at.device.deviceId}?command=${running}`);
    await at.panel("work").getByText("Running on the device").waitFor();
    await at.page.getByRole("button", { name: "Force cancel" }).click();
    await at.page.getByRole("dialog").getByText("without waiting for the agent").waitFor();
    await at.page.getByRole("dialog").getByRole("button", { name: "Force cancel" }).click();
    await wordOf(at, "work", "canceled").waitFor();
  });

  test("is queued once by a double click", async ({ open }) => {
    const at = await open();
    await compose(at, "echo");
    await send(at).dblclick();
    await at.panel("echo").waitFor();
    expect(await at.commands()).toHaveLength(1);
  });

  test("is queued once when the answer was lost and the person sends it again", async ({ open }) => {
    const at = await open();
    await compose(at, "echo");
    let lost = 0;
    await at.page.route("**/trpc/commands.queue**", async (route) => {
      if (lost > 0) return route.fallback();
      lost += 1;
      await route.fetch();
      return route.abort();
    });
    await send(at).click();
    await at.composer.getByText("The gateway did not answer.").waitFor();
    await send(at).click();
    await at.panel("echo").waitFor();
    expect([lost, (await at.commands()).length]).toEqual([1, 1]);
  });

  test("survives the end of the session in the middle of the composer", async ({ open }) => {
    const at = await open();
    await compose(at, "echo");
    await at.composer.getByLabel("Payload (JSON)").fill('{"kept": "as typed"}');
    const { as: elsewhere } = await world.session(at.tenant.ownerId);
    expect((await world.call(elsewhere, "DELETE", "/v1/account/sessions")).status).toBe(200);
    const signIn = at.page.getByRole("dialog", { name: "Your session has ended" });
    // A read in the background may notice it first, and its dialog then lies over the button: a click that waits for it would send what comes next.
    await send(at).dispatchEvent("click");
    await signIn.waitFor();
    const { url } = await world.app.signInLink({ userId: at.tenant.ownerId });
    await signIn.getByLabel("Link, or its token").fill(url);
    await signIn.getByRole("button", { name: "Sign in" }).click();
    await signIn.waitFor({ state: "hidden" });
    expect(await at.composer.getByLabel("Payload (JSON)").inputValue()).toBe('{"kept": "as typed"}');
    await send(at).click();
    await at.panel("echo").waitFor();
    expect(await at.commands()).toMatchObject([{ type: "echo", payload: { kept: "as typed" } }]);
  });

  test("is composed, watched and left by keyboard alone", async ({ open }) => {
    const at = await open();
    at.connect();
    await at.page.getByText("online", { exact: true }).waitFor();
    await at.page.keyboard.press("c");
    await at.composer.waitFor();
    await eventually(async () => expect(await at.page.evaluate("document.activeElement.tagName")).toBe("INPUT"));
    await at.page.keyboard.type("ping");
    await at.page.keyboard.press("Enter");
    await wordOf(at, "ping", "succeeded").waitFor();
    await at.page.keyboard.press("Escape");
    await at.panel("ping").waitFor({ state: "hidden" });
    await at.page.getByRole("grid", { name: "Commands" }).focus();
    await at.page.keyboard.press("Enter");
    await at.panel("ping").waitFor();
    await at.page.keyboard.press("Escape");
    await at.panel("ping").waitFor({ state: "hidden" });
    await at.page.keyboard.press("Escape");
    await at.page.getByRole("heading", { name: "Devices", level: 1 }).waitFor();
  });

  test("that Escape closes leaves the next Escape to the page, however soon it comes", async ({ open }) => {
    const at = await open();
    const commandId = await at.queue({ type: "ping" });
    await at.visitor.go(`/devices/${at.device.deviceId}?command=${commandId}`);
    await at.panel("ping").waitFor();
    await at.page.evaluate(PRESS_AGAIN_ONCE_CLOSED);
    await at.page.keyboard.press("Escape");
    await at.page.getByRole("heading", { name: "Devices", level: 1 }).waitFor();
  });
});

describe.concurrent("the composer", () => {
  test("checks the payload while somebody types, and offers its properties as fields", async ({ open }) => {
    const at = await open();
    await compose(at, "logs-fetch");
    const json = at.composer.getByLabel("Payload (JSON)");
    await json.fill('{"lines": "many"}');
    await at.composer.getByText("lines: must be an integer").waitFor();
    expect(await send(at).isDisabled()).toBe(true);
    await json.fill("{");
    await eventually(async () => expect(await json.getAttribute("aria-invalid")).toBe("true"));
    await json.fill("{}");
    await at.composer.getByLabel("lines", { exact: true }).fill("5");
    expect(JSON.parse(await json.inputValue())).toEqual({ lines: 5 });
    expect(await send(at).isEnabled()).toBe(true);
  });

  test("sends a dangerous command only after a yes, and none of the gateway's own", async ({ open }) => {
    const at = await open();
    await compose(at, "reboot");
    const yes = at.composer.getByRole("checkbox", { name: "Yes, run reboot on attic" });
    await yes.waitFor();
    expect(await send(at).isDisabled()).toBe(true);
    await yes.check();
    expect(await send(at).isEnabled()).toBe(true);
    await at.composer.getByLabel("Type").fill("shell");
    await at.composer.getByRole("checkbox", { name: "Yes, run shell on attic" }).waitFor();
    expect(await send(at).isDisabled()).toBe(true);
    await at.composer.getByLabel("Type").fill("svc.rotate-secret");
    await at.composer.getByText("Only the gateway itself sends this type.").waitFor();
    expect(await send(at).isDisabled()).toBe(true);
  });
});

describe.concurrent("the page of a device", () => {
  test("shows a hostile name and payload as text", async ({ open }) => {
    const at = await open(undefined, { name: HOSTILE });
    const commandId = await at.queue({ type: "echo", payload: { note: HOSTILE } });
    await at.visitor.go(`/devices/${at.device.deviceId}?command=${commandId}`);
    await at.page.getByRole("heading", { level: 1, name: HOSTILE }).waitFor();
    await at.panel("echo").getByText("Payload and delivery").click();
    await at.panel("echo").getByText(JSON.stringify(HOSTILE)).waitFor();
    expect(await at.page.locator("img").count()).toBe(0);
    expect(at.visitor.problems).toEqual([]);
  });

  test("calls another tenant's device and command unknown", async ({ open }) => {
    const at = await open();
    const foreign = await (await world.tenant()).device();
    const commandId = await at.queue({}, at.device);
    await at.visitor.go(`/devices/${foreign.deviceId}`);
    await at.page.getByText("Unknown, or not yours.").waitFor();
    const own = await at.tenant.device();
    await at.visitor.go(`/devices/${own.deviceId}?command=${commandId}`);
    await at.page.getByText("Unknown, or not yours.").waitFor();
  });

  test("saves name, tags and maintenance, and keeps what was typed when somebody else was faster", async ({ open }) => {
    const at = await open((id) => `/devices/${id}?tab=settings`);
    await at.page.getByRole("textbox", { name: "Tags" }).fill("roof, eu");
    await at.page.getByLabel("Maintenance", { exact: true }).selectOption("on");
    await at.page.getByRole("button", { name: "Save" }).click();
    await at.page.getByText("Saved.").waitFor();
    await at.page.getByText("In maintenance").waitFor();
    await at.page.getByRole("textbox", { name: "Name" }).fill("cellar");
    await world.call(at.owner, "PATCH", `/v1/devices/${at.device.deviceId}`, { body: { name: "roof" } });
    await at.page.getByText("Somebody has changed the device").waitFor();
    await at.page.getByRole("button", { name: "Save" }).click();
    await at.page.getByText("VERSION_CONFLICT").waitFor();
    expect(await at.page.getByRole("textbox", { name: "Name" }).inputValue()).toBe("cellar");
    await at.page.getByRole("button", { name: "Load it again" }).click();
    expect(await at.page.getByRole("textbox", { name: "Name" }).inputValue()).toBe("roof");
    const { body } = await world.call(at.owner, "GET", `/v1/devices/${at.device.deviceId}`);
    expect(body.data).toMatchObject({ name: "roof", tags: ["roof", "eu"], maintenance: { enabled: true } });
  });

  test("removes the device only after its name was typed", async ({ open }) => {
    const at = await open((id) => `/devices/${id}?tab=settings`);
    await at.page.getByRole("button", { name: "Remove the device" }).click();
    const question = at.page.getByRole("dialog");
    expect(await question.getByRole("button", { name: "Remove the device" }).isDisabled()).toBe(true);
    await question.getByLabel("Type attic to confirm").fill("attic");
    await question.getByRole("button", { name: "Remove the device" }).click();
    await at.page.getByRole("heading", { name: "Devices", level: 1 }).waitFor();
    expect((await world.call(at.owner, "GET", `/v1/devices/${at.device.deviceId}`)).status).toBe(404);
  });

  test("offers a viewer nothing that the role may not do", async ({ open }) => {
    const at = await open();
    const commandId = await at.queue();
    await at.tenant.user("viewer");
    const viewer = await chromium.visitor();
    await viewer.signIn(at.tenant.ownerId.replace("owner", "viewer"), { path: `/devices/${at.device.deviceId}?command=${commandId}` });
    await viewer.page.getByRole("region", { name: "ping", exact: true }).getByText("Waiting for the device to connect").waitFor();
    for (const name of ["Send a command", "Cancel command"]) expect(await viewer.page.getByRole("button", { name }).count(), name).toBe(0);
    expect(await viewer.page.getByRole("link", { name: "Settings" }).count()).toBe(1);
    expect(viewer.problems).toEqual([]);
    await viewer.close();
  });

  test("has no access finding and nothing to scroll sideways in every look", { timeout: 120_000 }, async ({ open }) => {
    const at = await open();
    at.connect();
    const [running, waiting] = [await at.queue({ type: "work", lane: "cellar" }), await at.queue({ type: "echo", lane: "cellar" })];
    const { page } = at;
    const [own, silent] = [at.device.deviceId, (await at.tenant.device()).deviceId];
    for (const [path, words] of [
      [`${own}?command=${waiting}`, "Waiting for its lane"],
      [`${own}?command=${running}`, "Running on the device"],
      [`${silent}?tab=metrics`, "The device has reported no metrics"],
      [`${own}?tab=settings`, "Remove the device"],
    ] as const) {
      await at.visitor.go(`/devices/${path}`);
      await page.getByText(words).first().waitFor();
      expect(await findingsInEveryLook(page), path).toEqual([]);
    }
    await compose(at, "reboot");
    await at.composer.getByRole("checkbox").waitFor();
    expect(await findingsInEveryLook(page), "composer").toEqual([]);
    expect(at.visitor.problems).toEqual([]);
  });
});
