// The overview: its counts, squares, chart and feed follow the fleet, for each person the devices that are theirs.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { accessFindings, findingsInEveryLook } from "../kit/browser/chromium.ts";
import { openConsole } from "../kit/browser/console.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { startAgent } from "../kit/gateway/agents.ts";
import type { Device, TestTenant } from "../kit/gateway/world.ts";

const HOSTILE = '"><img src=x onerror=alert(1)>';
const EMPTY = "Pair a device, and this page shows how your fleet is doing.";

const { world, chromium } = await openConsole();

const describeDevice = async (tenant: TestTenant, { deviceId }: Device, change: object) =>
  expect((await world.call(await tenant.user(), "PATCH", `/v1/devices/${deviceId}`, { body: change })).status).toBe(200);
const ping = async (tenant: TestTenant, { deviceId }: Device) =>
  expect((await world.call(await tenant.user(), "POST", `/v1/devices/${deviceId}/commands?wait=20`, { body: { type: "echo" } })).body.data.status).toBe(
    "succeeded",
  );
const open = async (userId: string, path = "/") => {
  const visitor = await chromium.visitor();
  await visitor.signIn(userId, { path });
  await visitor.page.getByRole("status").getByText("live", { exact: true }).waitFor();
  return visitor;
};
const COUNT = (name: RegExp) => ["link", { name }] as const;

/** What a test reads in the page, whose types are not the tests'. */
interface ShownRow {
  readonly children: readonly { readonly textContent: string | null }[];
}
interface ShownLink {
  getAttribute(name: string): string | null;
}

/** By the table of the chart. */
const succeededIn = async (page: Page): Promise<number> => {
  const rows = page.getByRole("region", { name: "Commands ended per second, last 2 minutes, as a table" }).getByRole("row");
  const figures = await rows.evaluateAll((all) => all.map((row) => Number((row as unknown as ShownRow).children[1]?.textContent)));
  return figures.reduce((sum, figure) => sum + (figure || 0), 0);
};

interface Drawn {
  getContext(kind: "2d"): { getImageData(x: number, y: number, width: number, height: number): { readonly data: Iterable<number> } };
}

/** One device online, one never connected; the first has run a command. */
const fleet = async () => {
  const tenant = await world.tenant();
  const [camera, spare] = [await tenant.device(), await tenant.device()];
  await describeDevice(tenant, camera, { name: "camera", tags: ["site:lisbon"] });
  await describeDevice(tenant, spare, { name: HOSTILE, tags: ["site:oslo"] });
  const agent = await startAgent(world.url, camera);
  await ping(tenant, camera);
  return { tenant, camera, spare, agent };
};

describe.concurrent("the overview", () => {
  test("of an empty tenant offers one next action: to pair a device", async () => {
    const tenant = await world.tenant();
    const { page, problems, close } = await open(tenant.ownerId);
    await page.getByText(EMPTY).waitFor();
    expect(await page.locator("main").getByRole("link").allTextContents()).toEqual(["Pair a device"]);
    expect(await accessFindings(page)).toEqual([]);
    await tenant.device();
    await page.getByRole(...COUNT(/^1 device$/)).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  test("follows a device that goes offline, without a reload: counts, square, list and feed", async () => {
    const { tenant, agent } = await fleet();
    const { page, problems, close } = await open(tenant.ownerId);
    await page.getByRole(...COUNT(/^1 online/)).waitFor();
    await page.getByRole("link", { name: "camera, online" }).waitFor();
    await page.getByText("Every device that has ever connected is online.").waitFor();
    await page.evaluate("window.isTheSamePage = true");
    await agent.stop();
    await page.getByRole(...COUNT(/^1 offline/)).waitFor();
    await page.getByRole(...COUNT(/^0 online/)).waitFor();
    await page.getByRole("link", { name: "camera, offline" }).waitFor();
    await page.getByRole("region", { name: "Offline for longest" }).getByRole("link", { name: "camera" }).waitFor();
    await page.getByRole("log").getByRole("listitem").filter({ hasText: "offline" }).getByRole("link", { name: "camera" }).waitFor();
    expect(await page.evaluate("window.isTheSamePage")).toBe(true);
    expect(problems).toEqual([]);
    await close();
  });

  test("counts are links to what they count", async () => {
    const { tenant, agent } = await fleet();
    const { page, close } = await open(tenant.ownerId);
    await page.getByRole(...COUNT(/^1 never connected/)).waitFor();
    const targets = await page.locator("main a").evaluateAll((links) => links.slice(0, 6).map((link) => (link as unknown as ShownLink).getAttribute("href")));
    expect(targets).toEqual([
      "/devices",
      "/devices?status=online",
      "/devices?status=offline",
      "/devices?status=provisioning",
      "/commands?show=open",
      "/commands?show=open",
    ]);
    await agent.stop();
    await close();
  });

  test("the chart shows what ended before the page was opened and since, also as a table", async () => {
    const { tenant, camera, agent } = await fleet();
    const { page, problems, close } = await open(tenant.ownerId);
    const chart = page.getByRole("region", { name: "Commands ended per second" });
    await chart.getByRole("img", { name: /Succeeded: now 0, at most 1; Failed: now 0, at most 0/ }).waitFor();
    await chart.getByRole("img").locator("path").first().waitFor({ state: "attached" });
    await chart.getByRole("button", { name: "As table" }).click();
    expect(await succeededIn(page)).toBe(1);
    await ping(tenant, camera);
    await eventually(async () => expect(await succeededIn(page)).toBe(2));
    expect(await page.getByRole("log").getByRole("listitem").filter({ hasText: "echo" }).count()).toBe(2);
    expect(problems).toEqual([]);
    await agent.stop();
    await close();
  });

  test("the feed can be held, and goes on with what came meanwhile", async () => {
    const { tenant, camera, agent } = await fleet();
    const { page, close } = await open(tenant.ownerId);
    const echoes = page.getByRole("log").getByRole("listitem").filter({ hasText: "echo" });
    await echoes.waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await ping(tenant, camera);
    await page.getByRole("button", { name: "As table" }).click();
    await eventually(async () => expect(await succeededIn(page)).toBe(2));
    expect(await echoes.count()).toBe(1);
    await page.getByRole("button", { name: "Resume" }).click();
    await eventually(async () => expect(await echoes.count()).toBe(2));
    await agent.stop();
    await close();
  });

  test("asks for all that it shows first in one request", async () => {
    const { tenant, agent } = await fleet();
    const visitor = await chromium.visitor();
    const requests: string[] = [];
    visitor.page.on("request", (request) => requests.push(decodeURIComponent(new URL(request.url()).pathname)));
    await visitor.signIn(tenant.ownerId);
    await visitor.page.getByRole("link", { name: "camera, online" }).waitFor();
    const [first] = requests.filter((path) => path.includes("devices.summary"));
    expect(first?.replace("/trpc/", "").split(",").sort()).toEqual([
      "account.get",
      "account.tenants",
      "commands.listPartial",
      "commands.summary",
      "devices.list",
      "devices.listPartial",
      "devices.summary",
    ]);
    await agent.stop();
    await visitor.close();
  });

  test("squares are one stop of the Tab key, move by arrows, and lead to their device", async () => {
    const { tenant, camera, spare, agent } = await fleet();
    const { page, close } = await open(tenant.ownerId, "/?group=tag");
    const squares = page.getByRole("group", { name: "All devices" });
    await squares.getByRole("link", { name: "camera, online" }).focus();
    await page.keyboard.press("ArrowRight");
    expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe(`${HOSTILE}, never connected`);
    expect(await squares.locator("a[data-id][tabindex='0']").count()).toBe(1);
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/devices/${camera.deviceId}`);
    await page.goBack();
    expect(new URL(page.url()).search).toBe("?group=tag");
    await squares.getByRole("link", { name: "site:oslo" }).waitFor();
    await page.goto("/?group=site", { waitUntil: "domcontentloaded" });
    await squares.getByRole("link", { name: "oslo", exact: true }).waitFor();
    expect(await squares.locator(`[data-id="${spare.deviceId}"]`).getAttribute("href")).toBe(`/devices/${spare.deviceId}`);
    await agent.stop();
    await close();
  });

  test("is usable for everybody in every look, with a name that tries to be markup", async () => {
    const { tenant, spare, agent } = await fleet();
    const second = await startAgent(world.url, spare);
    await second.stop();
    const { page, problems, close } = await open(tenant.ownerId);
    await page.getByRole("region", { name: "Offline for longest" }).getByRole("link", { name: HOSTILE }).waitFor();
    await page.getByRole("link", { name: `${HOSTILE}, offline` }).waitFor();
    await page.getByRole("log").getByRole("link").first().waitFor();
    await page
      .getByRole("img", { name: /Succeeded: now/ })
      .locator("path")
      .first()
      .waitFor({ state: "attached" });
    await page.getByRole("button", { name: "As table" }).click();
    expect(await findingsInEveryLook(page)).toEqual([]);
    expect(await page.locator("img").count()).toBe(0);
    expect(problems).toEqual([]);
    await agent.stop();
    await close();
  });

  test("a member who is limited to some devices sees counts, squares and events of these only", async () => {
    const { tenant, camera, spare, agent } = await fleet();
    const [owner, viewer] = [await tenant.user(), await tenant.user("viewer")];
    const { subject } = (await world.call(viewer, "GET", "/v1/auth/me")).body.data;
    const members: readonly { memberId: string; userId: string }[] = (await world.call(owner, "GET", "/v1/members")).body.data;
    const memberId = members.find(({ userId }) => userId === subject)?.memberId;
    const limited = await world.call(owner, "PATCH", `/v1/members/${memberId}`, { body: { selector: { deviceIds: [spare.deviceId] } } });
    expect(limited.body).toMatchObject({ success: true });
    const { page, problems, close } = await open(subject);
    await page.getByRole(...COUNT(/^1 device$/)).waitFor();
    await page.getByRole(...COUNT(/^0 online/)).waitFor();
    await page.getByRole("link", { name: `${HOSTILE}, never connected` }).waitFor();
    await ping(tenant, camera);
    await agent.stop();
    const other = await startAgent(world.url, spare);
    await page.getByRole("link", { name: `${HOSTILE}, online` }).waitFor();
    await page.getByRole("log").getByRole("link", { name: HOSTILE }).first().waitFor();
    expect(await page.getByText("camera").count()).toBe(0);
    expect(await page.getByText("echo").count()).toBe(0);
    expect(problems).toEqual([]);
    await other.stop();
    await close();
  });

  test("above a thousand devices the squares are drawn, and each group leads to its list", async () => {
    const tenant = await world.tenant();
    for (const tag of ["site:lisbon", "site:oslo"])
      expect((await world.call(await tenant.user(), "POST", "/v1/devices/provision", { body: { count: 600, tags: [tag] } })).status).toBe(201);
    const { page, problems, close } = await open(tenant.ownerId);
    const drawn = page.getByRole("img", { name: "lisbon: 600 never connected" });
    const firstColor = () => drawn.evaluate((canvas) => [...(canvas as unknown as Drawn).getContext("2d").getImageData(0, 4, 1, 1).data].slice(0, 3).join());
    await drawn.waitFor();
    await eventually(async () => expect(await firstColor()).toBe("82,93,104"));
    await page.emulateMedia({ colorScheme: "dark" });
    await eventually(async () => expect(await firstColor()).toBe("160,172,183"));
    await page.getByRole("img", { name: "oslo: 600 never connected" }).click({ position: { x: 3, y: 3 } });
    await page.waitForURL("**/devices/dev_*");
    await page.goBack();
    await page.getByRole("group", { name: "All devices" }).getByRole("link", { name: "oslo" }).click();
    await page.waitForURL("**/devices?tag=site%3Aoslo");
    expect(problems).toEqual([]);
    await close();
  });
});
