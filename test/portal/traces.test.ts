// The screens of traces: what programs send and what the gateway adds stand in one tree, from a program's call to the device's work.
import { expect, test } from "vitest";
import { newSpanId, newTraceId, span, request as spansOf, text } from "../features/traces/kit.ts";
import { findingsInPlaces } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { asKey, type TestTenant } from "../kit/gateway/world.ts";
import { openStage } from "./stage.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';

const { world, chromium } = await openConsole();

const isError = { status: { code: 2, message: "declined" } };
/** Sends spans over OTLP, as an exporter with an API key of the tenant does. */
const exporterOf = async (tenant: TestTenant) => {
  const { body } = await world.call(await tenant.user(), "POST", "/v1/api-keys", { body: { name: "exporter", role: "operator" } });
  const key = asKey(body.data.apiKey, tenant.tenantId);
  return async (spans: readonly object[], service = "shop"): Promise<void> => {
    const { status, body: answer } = await world.call(key, "POST", "/v1/traces", { body: spansOf(spans, [text("service.name", service)]) });
    expect([status, answer.partialSuccess]).toEqual([200, undefined]);
  };
};
/** A command that a program's span has caused, which a device has carried out. */
const openCaused = async (path: string) => {
  const stage = await openStage(world, chromium, () => path);
  const [exports, traceId, spanId] = [await exporterOf(stage.tenant), newTraceId(), newSpanId()];
  const attributes = [text("order", HOSTILE)];
  await exports([span({ traceId, spanId, name: "checkout", attributes }), span({ traceId, parentSpanId: spanId, name: HOSTILE, ...isError })]);
  stage.connect();
  const queued = await world.call(stage.owner, "POST", `/v1/devices/${stage.device.deviceId}/commands`, {
    body: { type: "ping" },
    headers: { traceparent: `00-${traceId}-${spanId}-01` },
  });
  const { commandId } = queued.body.data;
  await eventually(async () => {
    const { body } = await world.call(stage.owner, "GET", `/v1/traces/${traceId}`);
    expect(body.data.spans.map(({ operation }: { readonly operation: string }) => operation)).toEqual(
      expect.arrayContaining(["checkout", "commands.queue", "command ping", "command ack"]),
    );
  });
  return { ...stage, ...stage.visitor, exports, traceId, spanId, commandId };
};

test.concurrent("a program's spans, the gateway's call and the command's steps stand in one tree, and the chosen span says what it knows", async () => {
  const { page, problems, traceId, commandId, close } = await openCaused("/traces");
  const list = page.getByRole("grid", { name: "Traces" });
  await list.getByRole("row").filter({ hasText: "checkout" }).getByText("1 error").click();
  await page.getByRole("heading", { name: "checkout" }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/traces/${traceId}`);
  const rows = page.getByRole("grid", { name: "Spans" }).getByRole("row");
  const indentOf = async (name: string): Promise<number> => {
    const style = await rows.filter({ hasText: name }).locator("[title]").first().getAttribute("style");
    return Number(/--depth: (\d+)/.exec(style ?? "")?.[1]);
  };
  const [root, call, command, queue] = [
    await indentOf("checkout"),
    await indentOf("commands.queue"),
    await indentOf("command ping"),
    await indentOf("command queue"),
  ];
  expect([root < call, call < command, command < queue]).toEqual([true, true, true]);
  await rows.filter({ hasText: "command ping" }).click();
  const detail = page.getByRole("region", { name: "command ping" });
  await detail.getByText("mooring.command_status").waitFor();
  await detail.getByRole("link", { name: commandId }).waitFor();
  await rows.filter({ hasText: HOSTILE }).click();
  await page.getByRole("region", { name: HOSTILE }).getByText("declined").waitFor();
  await page.keyboard.press("Escape");
  await rows.filter({ hasText: "checkout" }).click();
  await page.getByRole("region", { name: "checkout" }).getByText(HOSTILE).waitFor();
  expect(await page.locator("img").count()).toBe(0);
  expect(problems).toEqual([]);
  await close();
});

test.concurrent("a command leads to its trace, and the trace back to the command", async () => {
  const { page, problems, traceId, commandId, close } = await openCaused("/commands?show=all");
  await page.getByRole("grid", { name: "Commands" }).getByText("ping").click();
  await page.getByRole("link", { name: traceId }).click();
  await page.getByRole("heading", { name: "checkout" }).waitFor();
  await page.getByRole("grid", { name: "Spans" }).getByText("command ping").click();
  await page.getByRole("link", { name: commandId }).click();
  await page.getByRole("heading", { name: "ping" }).waitFor();
  expect(problems).toEqual([]);
  await close();
});

test.concurrent("filters by service, operation, outcome, duration and device, and its URL brings them back", async () => {
  const { page, problems, exports, device, close } = await openCaused("/traces");
  await exports([span({ name: "restock shelves" })], "warehouse");
  await page.reload({ waitUntil: "domcontentloaded" });
  const list = page.getByRole("grid", { name: "Traces" });
  await list.getByText("restock shelves").waitFor();
  await page.getByLabel("Service").selectOption("warehouse");
  await list.getByText("checkout").waitFor({ state: "detached" });
  await page.getByLabel("Operation").selectOption("restock shelves");
  await page.reload({ waitUntil: "domcontentloaded" });
  await list.getByText("restock shelves").waitFor();
  expect(await list.getByText("checkout").count()).toBe(0);
  await page.getByLabel("Outcome").selectOption("with errors");
  await page.getByText("No trace matches these filters.").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByLabel("Device").fill(device.deviceId);
  await page.keyboard.press("Enter");
  await list.getByText("restock shelves").waitFor({ state: "detached" });
  await list.getByText("checkout").waitFor();
  await page.getByLabel("At least").fill("600000");
  await page.keyboard.press("Enter");
  await page.getByText("No trace matches these filters.").waitFor();
  expect(problems).toEqual([]);
  await close();
});

test.concurrent("what a person changes here is a trace of its own, and looking at the console is none", async () => {
  const { visitor, owner, close } = await openStage(world, chromium, () => "/fleets");
  const { page, problems } = visitor;
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Create a fleet" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("kiosks");
  await page.getByRole("dialog").getByRole("button", { name: "Create a fleet" }).click();
  await page.getByRole("heading", { name: "kiosks" }).waitFor();
  await eventually(async () => {
    const { body } = await world.call(owner, "GET", "/v1/traces");
    expect(body.data.map(({ rootOperation }: { readonly rootOperation: string }) => rootOperation)).toEqual(["fleets.create"]);
  });
  expect(problems).toEqual([]);
  await close();
});

test.concurrent("spans whose parents are missing or name each other in a circle are shown all the same", async () => {
  const tenant = await world.tenant();
  const exports = await exporterOf(tenant);
  const [traceId, a, b] = [newTraceId(), newSpanId(), newSpanId()];
  await exports([
    span({ traceId, spanId: a, parentSpanId: b, name: "hen" }),
    span({ traceId, spanId: b, parentSpanId: a, name: "egg" }),
    span({ traceId, parentSpanId: newSpanId(), name: "orphan" }),
  ]);
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: `/traces/${traceId}` });
  const rows = page.getByRole("grid", { name: "Spans" }).getByRole("row");
  for (const name of ["hen", "egg", "orphan"]) await rows.filter({ hasText: name }).waitFor();
  expect(await rows.count()).toBe(4);
  expect(problems).toEqual([]);
  await close();
});

test.concurrent("the trace of another tenant is unknown", async () => {
  const [tenant, other] = [await world.tenant(), await world.tenant()];
  const traceId = newTraceId();
  await (await exporterOf(other))([span({ traceId, name: "foreign" })]);
  const { page, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: `/traces/${traceId}` });
  await page.getByText("Unknown, or not yours.").waitFor();
  expect(await page.content()).not.toContain("foreign");
  await close();
});

test.concurrent("every page is without a finding in every look", { timeout: 120_000 }, async () => {
  const { page, problems, go, traceId, spanId, close } = await openCaused("/settings");
  const found = await findingsInPlaces({ page, go }, [
    ["/traces"],
    [`/traces/${traceId}`],
    [`/traces/${traceId}?span=${spanId}`],
    ["/traces?status=error&min=99999999"],
  ]);
  expect(found).toEqual([]);
  expect(problems).toEqual([]);
  await close();
});
