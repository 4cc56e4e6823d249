// The overview: what needs somebody comes first and follows the fleet; a small fleet shows its apps and devices, a large one its figures and groups.
import { describe, expect, test } from "vitest";
import { thisMachine } from "../../agent-sim/agent/index.ts";
import { newApp } from "../contract/samples/apps.ts";
import { accessFindings, findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { startAgent } from "../kit/gateway/agents.ts";
import { runJob } from "../kit/gateway/run-job.ts";
import type { Device, TestTenant } from "../kit/gateway/world.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';
const RIGHT_TO_LEFT = "\u05de\u05e6\u05dc\u05de\u05d4 \u{1f4f7}";

const { world, chromium } = await openConsole();

const describeDevice = async (tenant: TestTenant, { deviceId }: Device, change: object) =>
  expect((await world.call(await tenant.user(), "PATCH", `/v1/devices/${deviceId}`, { body: change })).status).toBe(200);
const open = async (userId: string, path = "/") => {
  const visitor = await chromium.visitor();
  await visitor.signIn(userId, { path });
  await visitor.page.getByRole("status").getByText("live", { exact: true }).waitFor();
  return visitor;
};
const hideSetup = async (tenant: TestTenant) =>
  expect((await world.call(await tenant.user(), "PATCH", `/v1/tenants/${tenant.tenantId}/settings`, { body: { setupHidden: true } })).status).toBe(200);

/** One device online with what it uses, one never connected. */
const fleet = async () => {
  const tenant = await world.tenant();
  const [camera, spare] = [await tenant.device(), await tenant.device()];
  await describeDevice(tenant, camera, { name: "camera", tags: ["site:lisbon"] });
  await describeDevice(tenant, spare, { name: HOSTILE, tags: ["site:oslo"] });
  const usage = { cpu: 23, memory: 61, disk: 82 };
  const agent = await startAgent(world.url, camera, { machine: { ...thisMachine, metrics: () => usage } });
  // The agent's own first heartbeat may be half a minute away.
  await world.call(camera.as, "POST", `/v1/devices/${camera.deviceId}/heartbeat`, { body: usage });
  return { tenant, camera, spare, agent };
};

/** So many devices at two sites; at the first all are offline since the same moment. */
const manyDevices = async (tenant: TestTenant, count: number): Promise<void> => {
  for (const [site, status] of [
    ["porto", "offline"],
    ["oslo", "online"],
  ]) {
    const tags = [`site:${site}`, "model:till"];
    expect((await world.call(await tenant.user(), "POST", "/v1/devices/provision", { body: { count, tags } })).status).toBe(201);
    await world.sql.query(
      `with d as (update devices set status = $2, name = $3 || right(device_id, 4) where tenant_id = $1 and $4 = any(tags) returning device_id)
       update device_presence p set last_seen_at = now() - interval '10 minutes', offline_after = now() + interval '1 hour' from d where d.device_id = p.device_id`,
      [tenant.tenantId, status, `${site} `, `site:${site}`],
    );
  }
};

describe.concurrent("the overview", () => {
  test("of an empty tenant is the list of first steps, and can be hidden", async () => {
    const tenant = await world.tenant();
    const { page, problems, close } = await open(tenant.ownerId);
    const setup = page.getByRole("region", { name: "Set up Mooring" });
    await setup.getByRole("link").first().waitFor();
    expect(await setup.getByRole("link").allTextContents()).toEqual(["Pair a device", "Choose an app", "Add a channel", "Choose when"]);
    expect(await accessFindings(page)).toEqual([]);
    await tenant.device();
    await setup.getByText("A first device is paired").waitFor();
    await setup.getByText("1 of 5").waitFor();
    await setup.getByRole("button", { name: "Hide" }).click();
    await setup.waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("region", { name: "Devices", exact: true }).waitFor();
    expect(await setup.count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  test("of a small fleet shows devices with what they use, and follows one that goes offline without a reload", async () => {
    const { tenant, camera, agent } = await fleet();
    await hideSetup(tenant);
    const { page, problems, close } = await open(tenant.ownerId);
    const [devices, attention] = [page.getByRole("region", { name: "Devices", exact: true }), page.getByRole("region", { name: "Needs attention" })];
    await devices.getByText("82%").waitFor();
    await attention.getByText("All 2 devices are well.").waitFor();
    await page.evaluate("window.isTheSamePage = true");
    await agent.stop();
    await attention.getByText(/camera has been offline for/).waitFor();
    await devices.getByText(/No heartbeat since .* Last: CPU 23%, memory 61%, disk 82%\./).waitFor();
    await page.getByRole("region", { name: "Activity" }).getByText("camera went offline").waitFor();
    expect(await page.evaluate("window.isTheSamePage")).toBe(true);
    await attention.getByRole("link", { name: "Look: camera" }).click();
    await page.waitForURL(`**/devices/${camera.deviceId}`);
    expect(problems).toEqual([]);
    await close();
  });

  test("opens an app with one click, and says which cannot be reached", async () => {
    const { tenant, camera, agent } = await fleet();
    const { appId } = await newApp({ world, tenant, device: camera }, { deviceId: camera.deviceId });
    const addresses = JSON.stringify([{ kind: "lan", address: "192.168.1.34" }]);
    await world.sql.query("update devices set addresses = $2 where device_id = $1", [camera.deviceId, addresses]);
    const reported = {
      appId,
      revision: 1,
      state: "running",
      health: "healthy",
      failure: null,
      restarts: 0,
      cpuPercent: 1,
      memoryBytes: 1,
      ports: { http: 8_701 },
    };
    const answers = JSON.stringify({ ports: [{ name: "http", protocol: "tcp", config: "port" }], health: { http: { port: "http" } } });
    await world.sql.query("update apps set name = 'Notes', reported = $2, spec = spec || $3::jsonb where app_id = $1", [
      appId,
      JSON.stringify(reported),
      answers,
    ]);
    const { page, problems, close } = await open(tenant.ownerId);
    const apps = page.getByRole("region", { name: "Your apps" });
    expect(await apps.getByRole("link", { name: "Open Notes" }).getAttribute("href")).toMatch(/^http:\/\/192\.168\.1\.34:/);
    await agent.stop();
    await apps.getByText("no contact").waitFor();
    await page.getByRole("region", { name: "Needs attention" }).getByText("Notes cannot be reached.").waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  test("asks for all that it shows first in one request", async () => {
    const { tenant, agent } = await fleet();
    const visitor = await chromium.visitor();
    const requests: string[] = [];
    visitor.page.on("request", (request) => requests.push(decodeURIComponent(new URL(request.url()).pathname)));
    await visitor.signIn(tenant.ownerId);
    await visitor.page.getByRole("region", { name: "Devices", exact: true }).getByRole("link", { name: "camera" }).waitFor();
    const [first = ""] = requests.filter((path) => path.includes("overview.get"));
    expect(first.replace("/trpc/", "").split(",")).toEqual(expect.arrayContaining(["attention.list"]));
    const asked = requests.flatMap((path) => (path.startsWith("/trpc/") ? path.replace("/trpc/", "").split(",") : []));
    expect([...new Set(asked.filter((name) => /^(devices|commands|apps|alerts)\./.test(name)))]).toEqual(["devices.list"]);
    await agent.stop();
    await visitor.close();
  });

  test("of a large fleet begins with figures that lead to what they count, and with the site that is gone as one line", async () => {
    const tenant = await world.tenant();
    await hideSetup(tenant);
    await manyDevices(tenant, 8);
    await runJob(world, "overview.count");
    const { page, problems, close } = await open(tenant.ownerId);
    const figures = page.getByRole("region", { name: "Figures" });
    await figures.getByRole("link", { name: /Online 8 50%/ }).waitFor();
    await figures.getByRole("img", { name: "Offline, last 24 hours" }).waitFor();
    const attention = page.getByRole("region", { name: "Needs attention" });
    await attention.getByText(/8 devices of site:porto went offline at/).waitFor();
    const groups = page.getByRole("region", { name: "Devices by model" });
    await groups.getByRole("combobox", { name: "Group by" }).selectOption("site");
    const porto = page.getByRole("region", { name: "Devices by site" }).getByRole("row", { name: /porto/ });
    await porto.waitFor();
    await attention.getByRole("link", { name: "Show 8: site:porto" }).click();
    await page.waitForURL("**/devices?status=offline&tag=site%3Aporto");
    await page.getByRole("row", { name: /porto/ }).nth(7).waitFor();
    await page.goBack();
    expect(new URL(page.url()).search).toBe("?group=site");
    await page.getByRole("region", { name: "Figures" }).waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  test("is usable for everybody in every look, with names that try to be markup or run from right to left", async () => {
    const { tenant, camera, spare, agent } = await fleet();
    await newApp({ world, tenant, device: camera }, { deviceId: spare.deviceId, status: "error" });
    await world.sql.query("update apps set name = $2 where tenant_id = $1", [tenant.tenantId, RIGHT_TO_LEFT.repeat(12)]);
    const second = await startAgent(world.url, spare);
    await second.stop();
    const { page, problems, close } = await open(tenant.ownerId);
    await page.getByRole("region", { name: "Needs attention" }).getByRole("link", { name: HOSTILE, exact: true }).waitFor();
    await page.getByRole("region", { name: "Your apps" }).getByText("no contact").waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    expect(await page.locator("img").count()).toBe(0);
    expect(problems).toEqual([]);
    await agent.stop();
    await close();
  });

  test("a member who is limited to some devices sees these only", async () => {
    const { tenant, spare, agent } = await fleet();
    const [owner, viewer] = [await tenant.user(), await tenant.user("viewer")];
    const { subject } = (await world.call(viewer, "GET", "/v1/auth/me")).body.data;
    const members: readonly { memberId: string; userId: string }[] = (await world.call(owner, "GET", "/v1/members")).body.data;
    const memberId = members.find(({ userId }) => userId === subject)?.memberId;
    const limited = await world.call(owner, "PATCH", `/v1/members/${memberId}`, { body: { selector: { deviceIds: [spare.deviceId] } } });
    expect(limited.body).toMatchObject({ success: true });
    const { page, problems, close } = await open(subject);
    await page.getByText("Your device is well.").waitFor();
    await page.getByRole("region", { name: "Devices", exact: true }).getByRole("link", { name: HOSTILE }).waitFor();
    await agent.stop();
    const other = await startAgent(world.url, spare);
    await page.getByRole("region", { name: "Activity" }).getByText("came online").waitFor();
    expect(await page.getByText("camera").count()).toBe(0);
    expect(problems).toEqual([]);
    await other.stop();
    await close();
  });

  test("each panel says its own error, and nothing else goes away", async () => {
    const { tenant, agent } = await fleet();
    const visitor = await chromium.visitor();
    await visitor.page.route(/\/trpc\/.*attention\.list/, async (route) => {
      const response = await route.fetch();
      const calls = new URL(route.request().url()).pathname.replace("/trpc/", "").split(",");
      const answers = await response.json();
      const failed = {
        error: { message: "down", code: -32603, data: { code: "SERVICE_UNAVAILABLE", httpStatus: 503, app: { code: "DEPENDENCY_UNAVAILABLE", details: {} } } },
      };
      await route.fulfill({ response, json: answers.map((answer: unknown, at: number) => (calls[at] === "attention.list" ? failed : answer)) });
    });
    await visitor.signIn(tenant.ownerId, { path: "/" });
    await visitor.page.getByRole("region", { name: "Devices", exact: true }).getByRole("link", { name: "camera" }).waitFor();
    await visitor.page.getByRole("region", { name: "Needs attention" }).getByText("DEPENDENCY_UNAVAILABLE").waitFor();
    await agent.stop();
    await visitor.close();
  });
});
