// The commands of all devices in the console: what is stuck, since when, and whose it is.
import { expect } from "vitest";
import { findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { testOpening } from "../kit/browser/opening.ts";
import { filterBy, openStage } from "./stage.ts";

const { world, chromium } = await openConsole();

const openPage = async (path = "/commands") => {
  const stage = await openStage(world, chromium, () => path);
  const { page } = stage.visitor;
  const grid = page.getByRole("grid", { name: "Commands" });
  const rows = () => grid.getByRole("row").allInnerTexts();
  return { ...stage, page, grid, rows };
};
const test = testOpening(openPage);

test.concurrent("what is open comes first, the oldest above, and leaves the list when it ends", async ({ open }) => {
  const at = await open();
  await at.page.getByText("No command is open").waitFor();
  await at.queue({ type: "echo" });
  await at.queue({ type: "ping" });
  await at.grid.getByText("ping").waitFor();
  const [, first, second] = await at.rows();
  expect([first, second]).toEqual([expect.stringContaining("echo"), expect.stringContaining("ping")]);
  await at.page.getByRole("link", { name: "2 open" }).waitFor();
  at.connect();
  await at.page.getByText("No command is open").waitFor();
  await at.page.getByRole("link", { name: "2 succeeded" }).click();
  await at.grid.getByText("echo").waitFor();
  expect(at.visitor.problems).toEqual([]);
});

test.concurrent("filters by state, type, device and creator, and its URL brings them back", async ({ open }) => {
  const at = await open("/commands?show=all");
  const other = await at.tenant.device();
  await at.queue({ type: "echo" });
  await at.queue({ type: "ping" }, other);
  await at.grid.getByText("ping").waitFor();
  const filter = at.page.getByRole("combobox", { name: "Filter commands" });
  await filter.fill(`device:${other.deviceId} `);
  await at.grid.getByText("echo").waitFor({ state: "hidden" });
  await at.grid.getByText("ping").waitFor();
  await at.page.reload({ waitUntil: "domcontentloaded" });
  await at.grid.getByText("ping").waitFor();
  expect(await at.grid.getByText("echo").count()).toBe(0);
  await filterBy(at.page, "Filter commands", `type:echo by:user:${at.tenant.ownerId} `);
  await at.grid.getByText("echo").waitFor();
  await filterBy(at.page, "Filter commands", "type:echo status:failed ");
  await at.page.getByText("No command matches these filters.").waitFor();
  await at.page.getByRole("link", { name: "Show what is open" }).click();
  await at.grid.getByText("ping").waitFor();
});

test.concurrent("the chosen command shows its device, what it waits for, and its end", async ({ open }) => {
  const at = await open();
  const commandId = await at.queue({ type: "echo" });
  await at.grid.getByText("echo").click();
  const panel = at.page.getByRole("region", { name: "echo", exact: true });
  await panel.getByText("Waiting for the device to connect").waitFor();
  expect(new URL(at.page.url()).searchParams.get("command")).toBe(commandId);
  at.connect();
  await panel.getByText("succeeded", { exact: true }).first().waitFor();
  await panel.getByRole("link", { name: "attic" }).click();
  await at.page.getByRole("heading", { name: "attic", level: 1 }).waitFor();
});

test.concurrent("another tenant's command is unknown, and Esc leaves it", async ({ open }) => {
  const at = await open();
  const other = await world.tenant();
  const foreign = await other.device();
  const { body } = await world.call(await other.user(), "POST", `/v1/devices/${foreign.deviceId}/commands`, { body: { type: "ping" } });
  await at.visitor.go(`/commands?command=${body.data.commandId}`);
  await at.page.getByText("Unknown, or not yours.").waitFor();
  await at.page.keyboard.press("Escape");
  await at.page.getByText("Unknown, or not yours.").waitFor({ state: "hidden" });
});

test.concurrent("by keyboard alone a person finds a command and opens it", async ({ open }) => {
  const at = await open("/devices");
  const ids = [await at.queue({ type: "echo" }), await at.queue({ type: "ping" })];
  await at.page.getByRole("heading", { name: "Devices", level: 1 }).waitFor();
  await at.page.keyboard.press("g");
  await at.page.keyboard.press("c");
  await at.grid.getByText("ping").waitFor();
  await at.grid.focus();
  await at.page.keyboard.press("j");
  await at.page.keyboard.press("Enter");
  await at.page.getByRole("region", { name: "ping", exact: true }).waitFor();
  expect(new URL(at.page.url()).searchParams.get("command")).toBe(ids[1]);
});

test.concurrent("has no access finding and nothing to scroll sideways in every look", { timeout: 120_000 }, async ({ open }) => {
  const at = await open();
  const commandId = await at.queue({ type: "echo" });
  for (const path of ["/commands", `/commands?command=${commandId}`, "/commands?show=ended"]) {
    await at.visitor.go(path);
    await (path.endsWith("ended") ? at.page.getByText("No command matches") : at.grid.getByText("echo")).waitFor();
    if (path.includes("command=")) await at.page.getByText("Waiting for the device to connect").waitFor();
    expect(await findingsInEveryLook(at.page), path).toEqual([]);
  }
});
