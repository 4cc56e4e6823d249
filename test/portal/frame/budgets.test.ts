// How much the console may weigh.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { built } from "../../flows/processes.ts";
import { openConsole } from "../../kit/browser/console.ts";

const KILOBYTE = 1_024;
const MAX_BYTES = 310 * KILOBYTE;
const MAX_FIRST_SCREEN_BYTES = 100 * KILOBYTE;
const MAX_PLACE_BYTES = 12 * KILOBYTE;
const MAX_REQUESTS = 6;

const { world, chromium } = await openConsole();
const tenant = await world.tenant();

const sizeOf = async (name: string): Promise<number> => gzipSync(await readFile(join(built("portal"), name)), { level: 9 }).length;

test("all scripts and styles together stay within 310 KB compressed", async () => {
  const names = (await readdir(built("portal"), { recursive: true })).filter((name) => /\.(js|css)$/.test(name));
  const sizes = await Promise.all(names.map(sizeOf));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES);
});

test("no area has more than 12 KB of its own", async () => {
  const names = await readdir(built("portal/assets"));
  const areas = await readdir(new URL("../../../portal/src/screens/", import.meta.url));
  const tooLarge: string[] = [];
  for (const area of areas) {
    const own = names.filter((name) => new RegExp(`^${area}-[\\w-]{8}\\.(js|css)$`).test(name));
    const size = (await Promise.all(own.map((name) => sizeOf(join("assets", name))))).reduce((sum, each) => sum + each, 0);
    if (size > MAX_PLACE_BYTES) tooLarge.push(`${area}: ${size} bytes in ${own}`);
  }
  expect(areas.length).toBeGreaterThan(20);
  expect(tooLarge).toEqual([]);
});

test.each(["/", "/devices"])("%s shows its first data within 100 KB and few requests", async (path) => {
  const { page, signIn, close } = await chromium.visitor({ fresh: true });
  const files: string[] = [];
  const calls: string[] = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith("/assets/")) files.push(pathname.slice(1));
    if (pathname.startsWith("/trpc/")) calls.push(pathname);
  });
  await signIn(tenant.ownerId, { path });
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  await page.getByRole("heading", { level: 1 }).waitFor();
  const sizes = await Promise.all([...new Set(files)].map(sizeOf));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_FIRST_SCREEN_BYTES);
  expect(calls.length, calls.join("\n")).toBeLessThanOrEqual(MAX_REQUESTS);
  await close();
});
