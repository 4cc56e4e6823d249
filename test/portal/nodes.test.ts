// Nodes: what the people who run the installation see of it, and nobody else.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { accessFindings, type Chromium, findingsInEveryLook, openChromium } from "../kit/browser/chromium.ts";
import { startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

const ADMIN = "runs-the-installation";
const HOSTILE = '"><img src=x onerror=alert(1)>';

// A gateway of its own: the last test drains it.
let world: World;
let chromium: Chromium;
let tenant: TestTenant;
beforeAll(async () => {
  world = await startWorld({ CONSOLE: "on", ADMIN_USERS: ADMIN });
  chromium = await openChromium(world);
  tenant = await world.tenant();
  await world.app.mint({ userId: ADMIN, tenantId: tenant.tenantId, role: "viewer", ttlSeconds: 600 });
});
afterAll(async () => {
  await chromium?.close();
  await world.close();
});

const open = async (userId: string, path: string) => {
  const visitor = await chromium.visitor();
  await visitor.signIn(userId, { path });
  await visitor.page.getByRole("status").getByText("live", { exact: true }).waitFor();
  return visitor;
};

const mail = () =>
  world.sql.query(
    "insert into mails (mail_id, recipient, status, attempts, last_error, created_at) values ($1, 'a@users.example', 'failed', 3, $2, now() - interval '1 hour')",
    [newId("mal"), HOSTILE],
  );

describe("nodes", { shuffle: false }, () => {
  test("are hidden from people who do not run the installation: no place, and no refused call at its address", async () => {
    const visitor = await chromium.visitor();
    const calls: string[] = [];
    visitor.page.on("request", (request) => void calls.push(decodeURIComponent(new URL(request.url()).pathname)));
    await visitor.signIn(tenant.ownerId, { path: "/nodes?tab=jobs" });
    await visitor.page.getByText(/^Your role does not permit you to see this\./).waitFor();
    await visitor.page.getByRole("status").getByText("live", { exact: true }).waitFor();
    expect(await visitor.page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Platform" }).count()).toBe(0);
    expect(calls.filter((path) => path.includes("admin."))).toEqual([]);
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });

  test("show the node with its load, and what it depends on", async () => {
    const { page, problems, close } = await open(ADMIN, "/");
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Platform" }).click();
    await page.getByRole("grid", { name: "Nodes" }).getByRole("row").filter({ hasText: "healthy" }).waitFor();
    await page.getByRole("region", { name: "Dependencies of this node" }).getByText("Database").waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  test("a job runs now, and its row says so", async () => {
    const { page, problems, close } = await open(ADMIN, "/nodes?tab=jobs");
    const row = page.getByRole("row").filter({ hasText: "outbox.retention" });
    await row.getByRole("button", { name: "Run now: outbox.retention" }).click();
    await row.getByText("Asked").waitFor();
    await page.getByRole("navigation", { name: "Platform" }).getByRole("link", { name: "Stuck" }).click();
    await page.waitForURL("**/nodes?tab=stuck");
    await page.reload({ waitUntil: "domcontentloaded" });
    const current = page.getByRole("navigation", { name: "Platform" }).locator("[aria-current]");
    await current.waitFor();
    expect(await current.allTextContents()).toEqual(["Stuck"]);
    expect(problems).toEqual([]);
    await close();
  });

  test("what is stuck stands there with its reason and what to do", async () => {
    await mail();
    const { page, problems, close } = await open(ADMIN, "/nodes?tab=stuck");
    const item = page.getByRole("listitem").filter({ hasText: "Mail failed" });
    await item.getByText("What to do").waitFor();
    await item.getByText(HOSTILE).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  test("what is announced there stands above every page of others until they dismiss it, and not before they may see it", async () => {
    const operator = await open(ADMIN, "/nodes?tab=announcements");
    await operator.page.getByRole("button", { name: "New announcement" }).click();
    const dialog = operator.page.getByRole("dialog");
    await dialog.getByLabel("Title").fill(HOSTILE);
    await dialog.getByLabel("Text").fill("Devices stay connected.");
    await dialog.getByLabel("Severity").selectOption({ label: "Warning" });
    expect(await accessFindings(operator.page)).toEqual([]);
    await dialog.getByRole("button", { name: "Announce" }).click();
    await operator.page.getByRole("row").filter({ hasText: "shown" }).getByText(HOSTILE).waitFor();
    const reader = await open(tenant.ownerId, "/devices");
    await reader.page.getByText("Devices stay connected.").waitFor();
    expect(await findingsInEveryLook(reader.page)).toEqual([]);
    await reader.page.getByRole("button", { name: /^Dismiss: / }).click();
    await reader.page.getByText("Devices stay connected.").waitFor({ state: "detached" });
    await operator.page.getByText("Devices stay connected.").waitFor();
    await operator.page.getByRole("button", { name: /^Delete: / }).click();
    await operator.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await operator.page.getByText("Devices stay connected.").waitFor({ state: "detached" });
    expect([...operator.problems, ...reader.problems]).toEqual([]);
    await operator.close();
    await reader.close();
  });

  test("are usable for everybody in every look", async () => {
    await mail();
    const { page, problems, close } = await open(ADMIN, "/nodes");
    await page.getByRole("region", { name: "Dependencies of this node" }).getByText("Database").waitFor();
    await page.getByRole("grid", { name: "Nodes" }).getByText("healthy").waitFor();
    for (const [tab, sign] of [
      ["Stuck", "What to do"],
      ["Announcements", "Nothing is announced."],
      ["Jobs", "outbox.relay"],
    ] as const) {
      expect(await findingsInEveryLook(page)).toEqual([]);
      await page.getByRole("navigation", { name: "Platform" }).getByRole("link", { name: tab }).click();
      await page.getByText(sign).first().waitFor();
    }
    expect(await findingsInEveryLook(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  // Last: the node stays as it is.
  test("a node is drained only after somebody typed its id", async () => {
    const { page, problems, close } = await open(ADMIN, "/nodes");
    await page.getByRole("button", { name: /^Drain / }).click();
    const dialog = page.getByRole("dialog");
    const label = await dialog.getByText(/^Type .* to confirm$/).textContent();
    const nodeId = /^Type (\S+) to confirm$/.exec(label ?? "")?.[1] ?? "";
    expect(await dialog.getByRole("button", { name: "Drain" }).isDisabled()).toBe(true);
    expect(await accessFindings(page)).toEqual([]);
    await dialog.getByRole("textbox").fill(nodeId);
    await dialog.getByRole("button", { name: "Drain" }).click();
    await page.getByRole("grid", { name: "Nodes" }).getByText("draining").waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});
