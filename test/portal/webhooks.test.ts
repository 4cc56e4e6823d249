// The screens of webhooks and events, as a person goes through them: what is made here is delivered, and what failed is sent again from here.
import { Webhook as Verifier } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accessFindings, findingsInPlaces, type Visitor } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import type { Caller, TestTenant } from "../kit/gateway/world.ts";
import { type Receiver, startReceiver, status } from "../kit/net/receiver.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();
let receiver: Receiver;
let tenant: TestTenant;
let owner: Caller;
let visitor: Visitor;
beforeAll(async () => {
  receiver = await startReceiver();
  tenant = await world.tenant();
  owner = await tenant.user();
  visitor = await chromium.visitor();
  await visitor.signIn(tenant.ownerId, { path: "/webhooks" });
});
afterAll(async () => {
  await receiver.close();
});

const post = async (path: string, body: object, as = owner) => (await world.call(as, "POST", `/v1${path}`, { body })).body.data;
let paths = 0;
const newPath = (): string => {
  paths += 1;
  return `/hook-${paths}`;
};
const arrived = (path: string, count: number) => eventually(() => expect(receiver.at(path).length).toBeGreaterThanOrEqual(count));
/** The event of a fleet that somebody made over the API. */
const newEvent = async () => {
  const { fleetId } = await post("/fleets", { name: "noticed" });
  return eventually(async () => {
    const { body } = await world.call(owner, "GET", `/v1/events?subjectId=${fleetId}`);
    expect(body.data).toHaveLength(1);
    return body.data[0];
  });
};
/** A webhook that somebody made over the API, and its page. */
const openMade = async (more: object = {}) => {
  const path = newPath();
  const { webhookId } = await post("/webhooks", { url: receiver.url(path), events: ["fleet.*"], ...more });
  await visitor.go(`/webhooks/${webhookId}`);
  await visitor.page.getByRole("heading", { name: receiver.url(path) }).waitFor();
  return { path, webhookId, page: visitor.page };
};
const deliveries = () => visitor.page.getByRole("grid", { name: "Deliveries" });

describe("a webhook", () => {
  test("that is made here receives what it asked for, signed with the secret that was shown once", async () => {
    const { page } = visitor;
    const path = newPath();
    await visitor.go("/webhooks");
    await page.getByRole("button", { name: "Create a webhook" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("URL").fill(receiver.url(path));
    expect(await dialog.getByRole("button", { name: "Create a webhook" }).isDisabled()).toBe(true);
    await dialog
      .locator("summary")
      .filter({ hasText: /^fleet/ })
      .click();
    await dialog.getByRole("checkbox", { name: "All of fleet" }).check();
    await dialog.getByLabel("Description").fill(HOSTILE);
    await dialog.getByLabel("Headers").fill("Authorization: Bearer of-the-receiver\n");
    expect(await accessFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Create a webhook" }).click();
    const secret = (await dialog.getByRole("button", { name: /^whsec_/ }).textContent()) ?? "";
    await dialog.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("heading", { name: receiver.url(path) }).waitFor();
    await page.getByText(HOSTILE).waitFor();
    expect(await page.content()).not.toContain(secret);
    await post("/fleets", { name: HOSTILE });
    await arrived(path, 1);
    const [{ headers, body } = { headers: {} as Record<string, string>, body: "" }] = receiver.at(path);
    expect(new Verifier(secret).verify(body, headers as Record<string, string>)).toMatchObject({ type: "fleet.created", data: { name: HOSTILE } });
    expect(headers).toMatchObject({ authorization: "Bearer of-the-receiver" });
    await deliveries().getByText("succeeded").click();
    await page.getByText("Attempt 1, by itself").waitFor();
    await page.getByText("Request", { exact: true }).click();
    await page.getByRole("region", { name: "Body of the request" }).getByText(HOSTILE.replace('"', '\\"')).waitFor();
    expect(await page.content()).not.toContain("of-the-receiver");
    expect(await page.locator("img").count()).toBe(0);
  });

  test("delivers what waits for its next attempt at once when somebody asks for it here", async () => {
    // By itself it would come a minute later.
    receiver.respond((one, response) => (receiver.at(one.path).length > 1 ? status(204) : status(429))(one, response));
    const { page, path } = await openMade();
    await post("/fleets", { name: "kiosks" });
    await deliveries().getByText("retrying").click();
    await page.getByText("Attempt 1, by itself").waitFor();
    await page.getByRole("region", { name: "Body of answer 1" }).getByText("status 429").waitFor();
    await page.getByRole("button", { name: "Deliver again" }).click();
    await page.getByText("Attempt 2").waitFor();
    await deliveries().getByText("succeeded").waitFor();
    const [first, second] = receiver.at(path);
    expect([second?.body, second?.headers["webhook-id"]]).toEqual([first?.body, first?.headers["webhook-id"]]);
    receiver.respond(status(200));
  });

  test("whose receiver is gone says so, and delivers from here what failed once it is enabled again", async () => {
    receiver.respond(status(410));
    const { page, path } = await openMade();
    await post("/fleets", { name: "gone" });
    await page.getByText("disabled: its receiver answered 410 Gone").waitFor();
    await deliveries().getByText("exhausted").click();
    await page.getByText("Attempt 1, by itself").waitFor();
    expect(await page.getByRole("button", { name: "Deliver again" }).count()).toBe(0);
    receiver.respond(status(200));
    await page.getByRole("button", { name: "Enable" }).click();
    await page.getByRole("button", { name: "Deliver again" }).click();
    await page.getByText("Attempt 2, by a person").waitFor();
    await deliveries().getByText("succeeded").waitFor();
    const received = receiver.at(path);
    expect(received.length).toBeGreaterThanOrEqual(2);
    expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  });

  test("shows the receiver's answer to a test where it was asked for, also when it is a refusal", async () => {
    const { page, path } = await openMade();
    await page.getByRole("button", { name: "Send a test" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Example").selectOption("fleet.created");
    await dialog.getByRole("button", { name: "Send a test" }).click();
    await dialog.getByText("The receiver took the test.").waitFor();
    expect(JSON.parse(receiver.at(path)[0]?.body ?? "{}")).toMatchObject({ type: "webhook.test", data: { example: { type: "fleet.created" } } });
    receiver.respond((_, response) => void response.writeHead(418).end(HOSTILE));
    await dialog.getByRole("button", { name: "Send a test" }).click();
    await dialog.getByText("The test did not arrive.").waitFor();
    await dialog.getByText("418", { exact: true }).waitFor();
    await dialog.getByText(HOSTILE).waitFor();
    expect(await accessFindings(page)).toEqual([]);
    await dialog.getByRole("link", { name: "Show the delivery" }).click();
    await page.getByText("Attempt 1, as a test").waitFor();
    receiver.respond(status(200));
  });

  test("signs with its new secret and the old one while both work", async () => {
    const { page, path } = await openMade();
    await page.getByRole("button", { name: "Rotate the secret" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Rotate the secret" }).click();
    const secret = (await dialog.getByRole("button", { name: /^whsec_/ }).textContent()) ?? "";
    await dialog.getByRole("button", { name: "I have copied it" }).click();
    await page.getByText(`…${secret.slice(-4)}`).waitFor();
    await post("/fleets", { name: "rotated" });
    await arrived(path, 1);
    const [{ headers, body } = { headers: {} as Record<string, string>, body: "" }] = receiver.at(path);
    expect(new Verifier(secret).verify(body, headers as Record<string, string>)).toMatchObject({ type: "fleet.created" });
    expect(String(headers["webhook-signature"]).split(" ")).toHaveLength(2);
  });

  test("sends nothing while it is paused, and a replay sends what it has missed", async () => {
    const { page, path } = await openMade();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("disabled: paused by a person").waitFor();
    const { subjectId: fleetId } = await newEvent();
    expect(receiver.at(path)).toEqual([]);
    await page.getByRole("button", { name: "Replay" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Which events").selectOption("missing");
    await dialog.getByRole("button", { name: "Replay" }).click();
    await dialog.getByText(/will be delivered again/).waitFor();
    await dialog.getByRole("button", { name: "Done" }).click();
    await eventually(() => expect(receiver.at(path).some(({ body }) => body.includes(fleetId))).toBe(true));
    await page.getByRole("button", { name: "Pause" }).waitFor();
  });

  test("is changed and deleted here", async () => {
    const { page, webhookId } = await openMade({ headers: { Authorization: "Bearer of-the-receiver" } });
    await page.getByRole("button", { name: "Change" }).click();
    const dialog = page.getByRole("dialog");
    await dialog
      .locator("summary")
      .filter({ hasText: /^device/ })
      .click();
    await dialog.getByRole("checkbox", { name: "device.offline" }).check();
    await dialog.getByLabel("Format").selectOption("CloudEvents 1.0");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByText("device.offline, fleet.*").waitFor();
    const { body } = await world.call(owner, "GET", `/v1/webhooks/${webhookId}`);
    expect(body.data).toMatchObject({ format: "cloudevents", events: ["device.offline", "fleet.*"], headerNames: ["authorization"] });
    await page.getByRole("button", { name: "Delete" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Webhooks" }).waitFor();
    expect((await world.call(owner, "GET", `/v1/webhooks/${webhookId}`)).status).toBe(404);
  });
});

test("the log of events shows what happens as it happens, with its data as text, and filters by type and subject", async () => {
  const { page } = visitor;
  await post("/fleets", { name: HOSTILE });
  await visitor.go("/events");
  await page.getByText("live", { exact: true }).waitFor();
  const device = await tenant.device();
  const { commandId } = await post(`/devices/${device.deviceId}/commands`, { type: "echo", payload: { says: HOSTILE } });
  await post(`/commands/${commandId}/cancel`, {});
  const grid = page.getByRole("grid", { name: "Events" });
  const canceled = grid.getByRole("row").filter({ hasText: "command.canceled" });
  await canceled.waitFor();
  await page.getByRole("combobox", { name: "Filter events" }).fill("type:command.* ");
  await grid.getByText("fleet.created").first().waitFor({ state: "detached" });
  await canceled.click();
  await page.getByRole("region", { name: "Data" }).getByText(device.deviceId).waitFor();
  expect(await accessFindings(page)).toEqual([]);
  await page.getByRole("link", { name: "Events of the same subject" }).click();
  await canceled.waitFor();
  await canceled.click();
  await page.getByRole("link", { name: commandId }).click();
  await page.getByRole("heading", { name: "echo" }).waitFor();
  expect(await page.locator("img").count()).toBe(0);
});

test("a pasted id leads to its webhook or event", async () => {
  const { page, webhookId } = await openMade();
  const { eventId, type } = await newEvent();
  const goTo = async (id: string): Promise<void> => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Place, device or id" }).fill(id);
    await page.getByRole("option", { name: id }).waitFor();
    await page.keyboard.press("Enter");
  };
  await goTo(eventId);
  await page.getByRole("region", { name: type }).waitFor();
  await goTo(webhookId);
  await page.getByRole("heading", { name: "Deliveries" }).waitFor();
});

test("all of this went without a complaint of the browser", () => {
  expect(visitor.problems).toEqual([]);
});

test("a webhook of another tenant is unknown", async () => {
  const other = await world.tenant();
  const { webhookId } = await post("/webhooks", { url: receiver.url("/foreign"), events: ["*"] }, await other.user());
  // The browser complains of the refusal.
  const { page, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: `/webhooks/${webhookId}` });
  await page.getByText("Unknown, or not yours.").waitFor();
  expect(await page.content()).not.toContain("/foreign");
  await close();
});

test("a viewer sees webhooks and events, but no action and no delivery, and nothing is refused", async () => {
  const { webhookId } = await openMade();
  await tenant.token("viewer");
  const viewer = await chromium.visitor();
  await viewer.signIn(tenant.ownerId.replace("owner", "viewer"), { path: "/webhooks" });
  const { page } = viewer;
  await page.getByRole("grid", { name: "Webhooks" }).waitFor();
  await viewer.go(`/webhooks/${webhookId}`);
  await page.getByText("fleet.*", { exact: true }).waitFor();
  expect(await page.getByRole("button", { name: /Create|Change|Send|Rotate|Replay|Pause|^Delete/ }).count()).toBe(0);
  expect(await page.getByRole("heading", { name: "Deliveries" }).count()).toBe(0);
  await page.keyboard.press("g");
  await page.keyboard.press("e");
  await page.getByRole("grid", { name: "Events" }).waitFor();
  expect(viewer.problems).toEqual([]);
  await viewer.close();
});

test("every page is without a finding in every look", { timeout: 120_000 }, async () => {
  const { webhookId } = await openMade();
  const { deliveryId } = await post(`/webhooks/${webhookId}/test`, {});
  const { eventId } = await newEvent();
  const before = visitor.problems.length;
  const found = await findingsInPlaces(visitor, [
    ["/webhooks"],
    [`/webhooks/${webhookId}`],
    [`/webhooks/${webhookId}?delivery=${deliveryId}`],
    [`/events?event=${eventId}`],
  ]);
  expect(found).toEqual([]);
  expect(visitor.problems.slice(before)).toEqual([]);
});
