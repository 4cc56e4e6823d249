// The screen of alerts: from a rule and the heartbeat that breaks it to the person who takes care, and the parts around it.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accessFindings, findingsInEveryLook, type Visitor } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { runJob } from "../kit/gateway/run-job.ts";
import type { Answer, Caller, TestTenant } from "../kit/gateway/world.ts";
import { type Receiver, startReceiver, status } from "../kit/net/receiver.ts";
import { filterBy, openStage, type Stage, tokensOf } from "./stage.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let owner: Caller;
let visitor: Visitor;
let stage: Stage;
let deviceId: string;
let receiver: Receiver;
const callAs = async (as: Caller, method: string, path: string, body?: object): Promise<Answer["body"]> =>
  (await world.call(as, method, `/v1${path}`, body === undefined ? {} : { body })).body?.data;
const call = (method: string, path: string, body?: object): Promise<Answer["body"]> => callAs(owner, method, path, body);

/** A tenant with a device whose agent runs, and its owner at the alerts. */
const open = async (): Promise<Stage> => {
  const made = await openStage(world, chromium, () => "/alerts", { name: HOSTILE });
  made.connect();
  return made;
};
beforeAll(async () => {
  receiver = await startReceiver();
  stage = await open();
  ({
    tenant,
    owner,
    visitor,
    device: { deviceId },
  } = stage);
});
afterAll(async () => {
  await stage?.close();
  await receiver?.close();
});

/** Any heartbeat breaks it. */
const makeRule = (name: string, as = owner): Promise<{ readonly ruleId: string }> =>
  callAs(as, "POST", "/alert-rules", { name, metric: "device.cpu", operator: "gte", threshold: 0, severity: "critical" });
/** By itself the gateway looks at the rules every 15 seconds. */
const evaluate = (): Promise<void> => runJob(world, "alerts.evaluate");
const alertOf = (ruleId: string, as = owner): Promise<{ readonly alertId: string }> =>
  eventually(async () => {
    await evaluate();
    const [alert] = await callAs(as, "GET", `/alerts?ruleId=${ruleId}`);
    if (alert === undefined) throw new Error("no alert yet");
    return alert;
  }, 60_000);
/** One that stays open, for all who only look at it. */
let standing: Promise<{ readonly alertId: string; readonly ruleId: string }> | undefined;
const standingAlert = () => {
  standing ??= makeRule("Standing").then(async ({ ruleId }) => ({ ruleId, ...(await alertOf(ruleId)) }));
  return standing;
};
const listOn = (page: Page) => page.getByRole("grid", { name: "Alerts" });
const list = () => listOn(visitor.page);
const dialogOf = (page: Page) => page.getByRole("dialog");
const dialog = () => dialogOf(visitor.page);

describe("an alert", () => {
  test("that a heartbeat opens appears by itself, and is acknowledged, snoozed and resolved here", { timeout: 120_000 }, async () => {
    const { owner: as, visitor: seen, close } = await open();
    const { page } = seen;
    const alerts = listOn(page);
    await page.getByText("Nothing needs anybody now.").waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    const { ruleId } = await makeRule("Busy", as);
    const { alertId } = await alertOf(ruleId, as);
    // The stream tells the number; no list is read for it.
    const badge = page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Alerts" }).getByText("1 open");
    await badge.waitFor();
    await alerts.getByText(`Busy: ${HOSTILE}`).click();
    const panel = page.getByRole("region", { name: /^Busy: / });
    await panel.getByRole("link", { name: HOSTILE }).waitFor();
    expect(await page.evaluate("document.querySelectorAll('img').length")).toBe(0);

    await panel.getByRole("button", { name: "Acknowledge" }).click();
    await dialogOf(page).getByLabel("Note").fill(HOSTILE);
    expect(await accessFindings(page)).toEqual([]);
    await dialogOf(page).getByRole("button", { name: "Acknowledge" }).click();
    await dialogOf(page).waitFor({ state: "detached" });
    await panel.getByRole("list", { name: "History" }).getByText("acknowledged").waitFor();
    expect(await callAs(as, "GET", `/alerts/${alertId}`)).toMatchObject({ status: "acknowledged", note: HOSTILE });
    expect(await panel.getByRole("button", { name: "Acknowledge" }).count()).toBe(0);
    await badge.waitFor({ state: "detached" });

    await panel.getByRole("button", { name: "Snooze" }).click();
    await dialogOf(page).getByLabel("For").selectOption("4 hours");
    await dialogOf(page).getByRole("button", { name: "Snooze" }).click();
    await panel.getByText("in 3 h").or(panel.getByText("in 4 h")).waitFor();
    const { snoozedUntil } = await callAs(as, "GET", `/alerts/${alertId}`);
    expect(Math.round((Date.parse(snoozedUntil) - Date.now()) / 3_600_000)).toBe(4);

    await callAs(as, "PATCH", `/alert-rules/${ruleId}`, { enabled: false });
    await eventually(async () => {
      await evaluate();
      expect((await callAs(as, "GET", `/alerts/${alertId}`)).status).toBe("resolved");
    });
    await alerts.waitFor({ state: "detached" });
    await panel.getByRole("list", { name: "History" }).getByText("by itself").waitFor();
    await page.getByRole("button", { name: "Show resolved alerts, too" }).click();
    await alerts.getByText("resolved").waitFor();
    expect(seen.problems).toEqual([]);
    await close();
  });

  test("is resolved by a person with a note", { timeout: 120_000 }, async () => {
    const { page } = visitor;
    const { alertId } = await alertOf((await makeRule("Resolved here")).ruleId);
    await visitor.go(`/alerts/${alertId}`);
    const panel = page.getByRole("region", { name: /^Resolved here: / });
    await panel.getByRole("button", { name: "Resolve" }).click();
    await dialog().getByLabel("Note").fill("replaced the fan");
    await dialog().getByRole("button", { name: "Resolve" }).click();
    await panel.getByText("replaced the fan").waitFor();
    expect(await call("GET", `/alerts/${alertId}`)).toMatchObject({ resolvedBy: expect.stringContaining(tenant.ownerId), note: "replaced the fan" });
  });

  test("is found by the filters of the URL, and needs attention on the overview", { timeout: 120_000 }, async () => {
    const { page, go } = visitor;
    const { ruleId } = await standingAlert();
    await go(`/alerts?deviceId=${deviceId}&severity=critical&ruleId=${ruleId}`);
    await list().getByText("Standing").waitFor();
    expect(await tokensOf(page)).toEqual(["severity:critical", `rule:${ruleId}`, `device:${deviceId}`]);
    await filterBy(page, "Filter alerts", "severity:info ");
    await page.getByText("No alert matches these filters.").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await list().getByText("Standing").waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await page
      .getByRole("region", { name: "Needs attention" })
      .getByRole("link", { name: /^Standing/ })
      .first()
      .click();
    await page
      .getByRole("heading", { name: /Standing/ })
      .first()
      .waitFor();
  });

  test("is reached and read by keyboard alone", { timeout: 120_000 }, async () => {
    const { page } = visitor;
    const { alertId } = await standingAlert();
    await visitor.go("/devices");
    await page.getByRole("heading", { name: "Devices" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("l");
    await list().getByText("Standing").waitFor();
    await list().focus();
    await page.keyboard.press("Enter");
    await page.getByRole("list", { name: "History" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("list", { name: "History" }).waitFor({ state: "detached" });
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Place, device or id" }).fill(alertId);
    await page.getByRole("option", { name: alertId }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: /^Standing: / }).waitFor();
  });
});

describe("a rule", () => {
  test("is tried on stored data before it is saved, changed and deleted", { timeout: 120_000 }, async () => {
    const { page } = visitor;
    const trial = { metric: "device.cpu", operator: "gte", threshold: 0 };
    await eventually(async () => {
      // By itself the gateway takes one sample a minute.
      await world.sql.query("delete from metric_progress");
      await runJob(world, "metrics.roll-up");
      expect((await call("POST", "/alert-rules/preview", trial)).deviceCount).toBe(1);
    });
    await visitor.go("/alerts?tab=rules");
    await page.getByRole("button", { name: "Create a rule" }).click();
    await dialog().getByLabel("Name", { exact: true }).fill(HOSTILE);
    await dialog().getByLabel("Threshold").fill("101");
    await dialog().getByRole("button", { name: "Try it on the last day" }).click();
    await dialog().getByText("In the last 24 hours it would have opened no alert.").waitFor();
    await dialog().getByLabel("Comparison").selectOption("≥");
    await dialog().getByLabel("Threshold").fill("0");
    await dialog().getByRole("button", { name: "Try it on the last day" }).click();
    await dialog().getByText("In the last 24 hours it would have opened an alert for 1 device.").waitFor();
    await dialog().getByRole("listitem").filter({ hasText: HOSTILE }).first().waitFor();
    await dialog().getByText("When it ends, and who is told").click();
    await dialog().getByLabel("For", { exact: true }).selectOption("1 h");
    expect(await accessFindings(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Create a rule" }).click();
    await dialog().waitFor({ state: "detached" });

    const grid = page.getByRole("grid", { name: "Rules" });
    await grid.getByText("CPU in percent ≥ 0 for 1 h").click();
    await dialog().getByLabel("Threshold").fill("90");
    await dialog().getByLabel("Is on").uncheck();
    await dialog().getByRole("button", { name: "Save" }).click();
    await dialog().waitFor({ state: "detached" });
    await grid.getByText("CPU in percent ≥ 90 for 1 h").click();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: `Delete ${HOSTILE}?` }).waitFor();
    await dialog().last().getByRole("button", { name: "Delete" }).click();
    await grid.getByText(HOSTILE).waitFor({ state: "detached" });
  });
});

describe("a silence", () => {
  test("keeps quiet what it matches until somebody ends it here", { timeout: 120_000 }, async () => {
    const { page } = visitor;
    await visitor.go("/alerts?tab=silences");
    await page.getByRole("button", { name: "Create a silence" }).click();
    await dialog().getByLabel("By").selectOption("Name of the rule");
    await dialog().getByLabel("Value").fill("Quiet.*");
    await dialog()
      .getByRole("checkbox", { name: /^Pattern/ })
      .check();
    await dialog().getByRole("button", { name: "Add a condition" }).click();
    await dialog().getByLabel("By").last().selectOption("Severity");
    await dialog().getByLabel("Value").last().fill("critical");
    await dialog().getByLabel("Reason").fill(HOSTILE);
    expect(await accessFindings(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Create a silence" }).click();
    await dialog().waitFor({ state: "detached" });
    expect((await call("GET", "/alert-silences"))[0]).toMatchObject({
      matchers: [
        { name: "rule", value: "Quiet.*", isRegex: true },
        { name: "severity", value: "critical", isRegex: false },
      ],
    });
    const { alertId } = await alertOf((await makeRule("Quiet now")).ruleId);
    await eventually(async () => {
      await evaluate();
      expect((await call("GET", `/alerts/${alertId}`)).silenced).toBe(true);
    });
    await page.getByRole("link", { name: "Alerts", exact: true }).last().click();
    await page.getByRole("row").filter({ hasText: "Quiet now" }).getByText("silenced").waitFor();

    await page.getByRole("link", { name: "Silences" }).click();
    await page.getByRole("grid", { name: "Silences" }).getByText(HOSTILE).click();
    await dialog().getByRole("button", { name: "End the silence" }).click();
    await page.getByRole("heading", { name: "End this silence?" }).waitFor();
    await dialog().getByRole("button", { name: "End the silence" }).click();
    await page.getByText("A silence keeps alerts quiet for a time").waitFor();
    expect(await call("GET", "/alert-silences")).toEqual([]);
  });
});

describe("a channel", () => {
  test("shows its secret once, masks its address, and says what the other side answered to a test", { timeout: 120_000 }, async () => {
    const { page } = visitor;
    await visitor.go("/alerts?tab=channels");
    await page.getByRole("button", { name: "Create a channel" }).click();
    await dialog().getByLabel("Type").selectOption("Webhook");
    await dialog().getByLabel("Name", { exact: true }).fill(HOSTILE);
    await dialog().getByLabel("URL").fill(receiver.url("/on-call/secret-path"));
    expect(await accessFindings(page)).toEqual([]);
    await dialog().getByRole("button", { name: "Create a channel" }).click();
    await dialog().getByText("Copy it now").waitFor();
    await dialog().getByRole("button", { name: "I have copied it" }).click();

    const grid = page.getByRole("grid", { name: "Channels" });
    await grid.getByText(HOSTILE).click();
    await dialog().getByRole("button", { name: "Send a test message" }).click();
    await dialog().getByText("Delivered: the answer was 200").waitFor();
    expect(receiver.received.map(({ path }) => path)).toEqual(["/on-call/secret-path"]);
    receiver.respond(status(500));
    await dialog().getByRole("button", { name: "Send a test message" }).click();
    await dialog().getByText("Not delivered, the answer was 500").waitFor();
    expect(await dialog().getByText("changed elsewhere").count()).toBe(0);
    expect(await page.content()).not.toContain("secret-path");
    expect(await accessFindings(page)).toEqual([]);

    await dialog().getByLabel("Name", { exact: true }).fill("On call");
    await dialog().getByLabel("Is on").uncheck();
    await dialog().getByRole("button", { name: "Save" }).click();
    await grid.getByText("off", { exact: true }).waitFor();
    await grid.getByText("On call").click();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await dialog().last().getByRole("button", { name: "Delete" }).click();
    await page.getByText("A channel tells of alerts").waitFor();
  });
});

test("an open alert, the lists and the forms are without a finding in every look", { timeout: 120_000 }, async () => {
  const { alertId, ruleId } = await standingAlert();
  const { page } = visitor;
  const opened = [`rules&open=${ruleId}`, "silences", "rules&open=new", "silences&open=new", "channels&open=new"].map((tab) => `/alerts?tab=${tab}`);
  for (const path of [`/alerts?open=${alertId}`, ...opened]) {
    await visitor.go(path);
    await page.getByRole("list", { name: "History" }).or(dialog().getByRole("button").nth(1)).or(page.getByText("A silence keeps")).first().waitFor();
    if (path.includes("rules")) await dialog().getByText("When it ends, and who is told").click();
    expect(await findingsInEveryLook(page), path).toEqual([]);
  }
});

test("all of this went without a complaint of the browser", () => {
  expect(visitor.problems).toEqual([]);
});

test("a viewer sees alerts, rules and channels without a way to change them, and nothing is refused", { timeout: 120_000 }, async () => {
  const { alertId } = await standingAlert();
  await tenant.token("viewer");
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId.replace("owner", "viewer"), { path: `/alerts?open=${alertId}` });
  await page.getByRole("list", { name: "History" }).waitFor();
  await page.getByRole("link", { name: "Show the rule" }).click();
  await dialogOf(page).getByText("CPU in percent ≥ 0").waitFor();
  await page.keyboard.press("Escape");
  for (const tab of ["Silences", "Channels"]) {
    await page.getByRole("link", { name: tab }).click();
    await page.getByText(/^A (silence keeps|channel tells)/).waitFor();
  }
  expect(await page.getByRole("button", { name: /Acknowledge|Resolve|Snooze|Create/ }).count()).toBe(0);
  expect(problems).toEqual([]);
  await close();
});

test("the alert of another tenant is unknown", { timeout: 120_000 }, async () => {
  const { alertId } = await standingAlert();
  const other = await world.tenant();
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(other.ownerId, { path: `/alerts/${alertId}` });
  await page.getByText("Unknown, or not yours.").waitFor();
  expect(await page.content()).not.toContain("Standing");
  expect(problems.filter(({ kind }) => kind !== "answer")).toEqual([]);
  await close();
});
