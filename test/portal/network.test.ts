// Tunnels and mesh routes in the browser: an app's port opens in two clicks, a tunnel says why it serves nobody, and a route waits for approval.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { TEMPLATE } from "../kit/gateway/app-template.ts";
import { askAs } from "../kit/gateway/ask.ts";
import { type SimulatedDevice, startSimulatedDevice } from "../kit/gateway/simulated-device.ts";
import type { Caller, Device, TestTenant } from "../kit/gateway/world.ts";
import { freePort } from "../kit/net/free-port.ts";

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let owner: Caller;
let device: Device;
let machine: SimulatedDevice;
const origin = createServer((_request, response) => void response.setHeader("Content-Type", "text/html").end("<h1>the app itself</h1>"));
const ask = (method: string, path: string, body?: object) => askAs(world, owner, method, path, body);

beforeAll(async () => {
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  machine = await startSimulatedDevice(world, tenant);
  ({ device } = machine);
  await ask("PATCH", `/devices/${device.deviceId}`, { name: "attic" });
});
afterAll(async () => {
  await machine?.stop();
  origin.closeAllConnections();
  origin.close();
});

test("two clicks open an app's port through a tunnel that only members enter", { timeout: 120_000 }, async () => {
  const { port } = origin.address() as AddressInfo; // as: it listens on TCP
  const { deploymentId } = await ask("POST", "/deployments", { appId: TEMPLATE, deviceId: device.deviceId, name: "store", configuration: { port } });
  const { appId } = await eventually(async () => {
    const found = await ask("GET", `/deployments/${deploymentId}`);
    expect(found.status).toBe("active");
    return found;
  });
  const { page, context, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: `/apps/${appId}` });
  await page.getByRole("button", { name: "Make a tunnel to http" }).click();
  const opened = context.waitForEvent("page");
  await page.getByRole("link", { name: "Open http through its tunnel" }).click();
  await (await opened).getByRole("heading", { name: "the app itself" }).waitFor();
  expect(problems).toEqual([]);
  expect(await findingsInEveryLook(page)).toEqual([]);

  await page.getByRole("link", { name: "Details of the tunnel to http" }).click();
  await page.getByRole("heading", { level: 1, name: "store http" }).waitFor();
  await page.getByText("open", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Health" }).getByText("answers").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("It is stopped, and serves nobody.").waitFor();
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("link", { name: "Open", exact: true }).waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Delete the tunnel" }).click();
  await page.getByLabel("Type store http to confirm").fill("store http");
  await page.getByRole("button", { name: "Delete the tunnel" }).click();
  const others = page.getByRole("grid", { name: "Tunnels" });
  await page.getByText("without an open port on the device.").or(others).waitFor();
  expect(await others.getByText("store http").count()).toBe(0);
  await close();
});

/** The form of a tunnel, with the device and this port filled in. */
const fillForm = async (page: Page, port: number): Promise<Locator> => {
  await page.getByRole("button", { name: "Open a tunnel" }).click();
  const dialog = page.getByRole("dialog", { name: "Open a tunnel" });
  await dialog.getByRole("combobox", { name: "Device" }).fill("attic");
  await dialog.getByRole("option", { name: "attic" }).click();
  await dialog.getByLabel("Port on the device").fill(String(port));
  return dialog;
};

test("a tunnel is made in the form, says that nothing listens at its service, and shows its token to whoever asks", { timeout: 120_000 }, async () => {
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/network" });
  const dialog = await fillForm(page, await freePort());
  await dialog.getByLabel("Name", { exact: true }).fill("printer");
  await dialog.getByLabel("Open to").selectOption("token");
  await dialog.getByLabel("Only from these addresses").fill("127.0.0.0/8\n203.0.113.7");
  await dialog.getByLabel("Requests a minute").fill("1200");
  expect(await findingsInEveryLook(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Open a tunnel" }).click();
  await page.getByText("The device does not reach the service.").waitFor();
  await page.getByText("127.0.0.0/8, 203.0.113.7").waitFor();
  await page.getByText("1,200 requests a minute").waitFor();
  await page.getByRole("button", { name: "Show the token" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Show the token" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^mtt_/ }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("navigation", { name: "Path" }).getByRole("link", { name: "Tunnels" }).click();
  await page.getByRole("grid", { name: "Tunnels" }).getByText("service does not answer").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  expect(problems).toEqual([]);
  await close();
});

test("a tunnel of TCP asks for addresses, and shows neither members nor a token", { timeout: 120_000 }, async () => {
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/network" });
  const dialog = await fillForm(page, (origin.address() as AddressInfo).port);
  await dialog.getByLabel("It speaks").selectOption("tcp");
  for (const label of ["Host name", "The service gets as host"]) expect(await dialog.getByLabel(label).count()).toBe(0);
  expect(await dialog.getByLabel("Open to").getByRole("option").allTextContents()).toEqual(["The addresses below", "Everybody"]);
  await dialog.getByLabel("Name", { exact: true }).fill("database");
  await dialog.getByLabel("Only from these addresses").fill("127.0.0.1");
  expect(await findingsInEveryLook(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Open a tunnel" }).click();
  await page
    .getByText(/^tcp:\/\/127\.0\.0\.1:\d+$/)
    .first()
    .waitFor();
  await page.getByText("open to its addresses").waitFor();
  for (const word of ["Show the token", "ends with"]) expect(await page.getByText(word).count()).toBe(0);
  await page.getByRole("button", { name: "Change" }).click();
  const change = page.getByRole("dialog", { name: "Change" });
  await change.getByLabel("Only from these addresses").fill("127.0.0.1\n203.0.113.0/24");
  await change.getByRole("button", { name: "Save" }).click();
  await page.getByText("127.0.0.1, 203.0.113.0/24").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  expect(problems).toEqual([]);
  await close();
});

test("a mesh route waits for approval, gets it, and stands at its consumer", { timeout: 120_000 }, async () => {
  const consumer = await tenant.device();
  await ask("PATCH", `/devices/${consumer.deviceId}`, { name: "cellar" });
  const { page, problems, signIn, go, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/network/routes" });
  await page.getByRole("button", { name: "Add a mesh route" }).click();
  const dialog = page.getByRole("dialog", { name: "Add a mesh route" });
  const pick = async (label: string, name: string): Promise<void> => {
    await dialog.getByRole("combobox", { name: label }).fill(name);
    await dialog.getByRole("option", { name }).click();
  };
  await dialog.getByLabel("Name", { exact: true }).fill("plant floor");
  await dialog.getByLabel("Network").fill("192.168.77.0/24");
  await pick("Routers", "attic");
  await pick("Consumers", "cellar");
  await dialog.getByRole("button", { name: "Add a mesh route" }).click();
  await page.getByText("Nobody gets through until somebody approves it.").waitFor();
  await page.getByText("1 device can reach 192.168.77.0/24 through its routers once it is approved.").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Nobody gets through until somebody approves it.").waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Routers" }).getByRole("link", { name: "attic" }).waitFor();
  await go(`/devices/${consumer.deviceId}?tab=network`);
  await page.getByRole("region", { name: "Mesh routes" }).getByRole("link", { name: "plant floor" }).waitFor();
  await page.getByText("No tunnel leads to this device.").waitFor();
  expect(await findingsInEveryLook(page)).toEqual([]);
  expect(problems).toEqual([]);
  await close();
});

test("a viewer sees tunnels and mesh routes and may change none", async () => {
  await tenant.token("viewer");
  const { page, signIn, go, close } = await chromium.visitor();
  await signIn(tenant.ownerId.replace("owner", "viewer"), { path: "/network" });
  for (const path of ["/network", "/network/routes"]) {
    await go(path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await eventually(async () =>
      expect(
        await page
          .getByRole("main")
          .getByRole("button", { name: /Open|Add/ })
          .count(),
      ).toBe(0),
    );
  }
  await close();
});
