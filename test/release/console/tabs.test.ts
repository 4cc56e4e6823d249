// Many tabs of one browser: they share one stream, which moves on when its tab is closed or hidden.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";

const { world, chromium } = await openConsole();
const tenant = await world.tenant();

const TABS = 8;
const openTab = async ({ context }: Visitor, within: { readonly timeout?: number } = {}) => {
  const page = await context.newPage();
  await page.goto("/devices", { waitUntil: "commit", ...within });
  await page.getByText("Devices appear here once they are paired.").waitFor(within);
  return page;
};
const isLive = (page: Page): Promise<void> => page.getByRole("status").getByText("live", { exact: true }).waitFor();

test("eight tabs are all live", async () => {
  const visitor = await chromium.visitor();
  await visitor.signIn(tenant.ownerId, { path: "/devices" });
  for (let tab = 1; tab < TABS; tab += 1) await openTab(visitor);
  await Promise.all(visitor.context.pages().map(isLive));
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test("without one stream for all, the browser has no connection left for the seventh tab", async () => {
  const visitor = await chromium.visitor();
  await visitor.context.addInitScript("Object.defineProperty(navigator, 'locks', { value: undefined })");
  await visitor.signIn(tenant.ownerId, { path: "/devices" });
  for (let tab = 1; tab < 6; tab += 1) await isLive(await openTab(visitor));
  // Even its address waits for a connection.
  await expect(openTab(visitor, { timeout: 2_000 })).rejects.toThrow("Timeout");
  await visitor.close();
});

test("when the tab with the stream is closed, another takes the stream over and shows what happens next", async () => {
  const visitor = await chromium.visitor();
  await visitor.signIn(tenant.ownerId, { path: "/devices" });
  const second = await openTab(visitor);
  await visitor.page.close();
  await isLive(second);
  await world.call(await tenant.user(), "POST", "/v1/devices/provision", { body: { count: 1 } });
  await second.getByText("1 device", { exact: true }).waitFor();
  await visitor.close();
});
