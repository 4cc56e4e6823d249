// The gateway goes away under an open page and comes back: the page says so, and is right again without a reload.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Chromium, openChromium } from "../../kit/browser/chromium.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { createTestDatabase } from "../../kit/stores/database.ts";

// A gateway of its own: it ends and starts again at the same address. In test/release/console/restart.test.ts its process is killed.
let start: () => Promise<World>;
let dataDir: string;
let world: World;
let chromium: Chromium;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "mooring-restart-"));
  const env = { CONSOLE: "on", PORT: String(await freePort()) };
  const beside = { databaseUrl: await createTestDatabase(), dataDir };
  start = () => startWorld(env, { beside });
  world = await start();
  chromium = await openChromium(world);
});
afterAll(async () => {
  await chromium?.close();
  await world.close();
  await rm(dataDir, { recursive: true, force: true });
});

test("a page says that it reconnects, and shows what changed meanwhile", async () => {
  const tenant = await world.tenant();
  const owner = await tenant.user();
  const { page, problems, signIn, close } = await chromium.visitor();
  await signIn(tenant.ownerId, { path: "/devices" });
  await page.getByText("Devices appear here once they are paired.").waitFor();
  await page.evaluate("window.isTheSamePage = true");
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();

  await world.close();
  await page.getByRole("status").getByText("Reconnecting, data may be stale").waitFor();
  await page.getByText("No news since").waitFor();
  world = await start();
  expect((await world.call(owner, "POST", "/v1/devices/provision", { body: { count: 1 } })).status).toBe(201);
  await page.getByRole("status").getByText("live", { exact: true }).waitFor({ timeout: 30_000 });
  await page.getByText("1 device", { exact: true }).waitFor();
  expect(await page.evaluate("window.isTheSamePage")).toBe(true);
  // What the browser itself says of refused connections is no fault of the page.
  expect(problems.filter(({ kind }) => kind !== "answer" && kind !== "console")).toEqual([]);
  await close();
});
