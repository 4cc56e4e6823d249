// Visitors of tests follow each other in one page. None finds anything of an earlier one, or these tests would depend on their order.
import { expect, test } from "vitest";
import type { Visitor } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";

const { world, chromium } = await openConsole();

const KEEP = `new Promise((resolve, reject) => {
  localStorage.setItem("kept", "1");
  sessionStorage.setItem("kept", "1");
  name = "kept";
  const request = indexedDB.open("kept");
  request.onsuccess = resolve;
  request.onerror = reject;
})`;
const KEPT = `indexedDB.databases().then((databases) => [
  ...[localStorage.length, sessionStorage.length, name, databases.length, document.cookie],
  ...[innerWidth, matchMedia("(prefers-color-scheme: dark)").matches, matchMedia("(prefers-reduced-motion: reduce)").matches, matchMedia("print").matches],
  ...[history.length, globalThis.pressed],
])`;
/** Where the pointer is, as it presses. */
const PRESSED = "addEventListener('mousedown', ({ clientX, clientY }) => { globalThis.pressed = [clientX, clientY]; })";
const kept = async ({ page, context, problems }: Visitor) => {
  await page.goto("/health/live");
  await page.evaluate(PRESSED);
  await page.mouse.down();
  return { cookies: await context.cookies(), problems: [...problems], page: await page.evaluate<unknown>(KEPT) };
};

test("a visitor in the place of another finds nothing of them", async () => {
  const fresh = await chromium.visitor({ fresh: true });
  const nothing = await kept(fresh);
  await fresh.close();
  expect(nothing.page).toContainEqual([0, 0]);

  const first = await chromium.visitor();
  await first.signIn((await world.tenant()).ownerId);
  await first.page.getByRole("status").getByText("live", { exact: true }).waitFor();
  await first.go("/devices");
  await first.page.evaluate(KEEP);
  await first.page.evaluate("console.error('mine')");
  await first.page.mouse.move(200, 200);
  await first.page.emulateMedia({ media: "print", colorScheme: "dark", reducedMotion: "no-preference" });
  await first.page.setViewportSize({ width: 390, height: 844 });
  expect(first.problems).toHaveLength(1);
  await first.close();

  const second = await chromium.visitor();
  expect(second.page).toBe(first.page);
  expect(await kept(second)).toEqual(nothing);
  await second.page.evaluate("console.error('of the second')");
  expect([first.problems.length, second.problems.length]).toEqual([1, 1]);
  await second.close();
});

test.each<[string, (visitor: Visitor) => unknown]>([
  ["a listener", ({ page }) => page.on("request", () => undefined)],
  ["a route", ({ page }) => page.route("/", (route) => route.abort())],
  ["a script for each page", ({ page }) => page.addInitScript("")],
  ["a clock", ({ page }) => page.clock.install()],
  ["a second page", ({ context }) => context.newPage()],
  ["a window", ({ page, context }) => Promise.all([context.waitForEvent("page"), page.evaluate("void open('about:blank')")])],
  ["a permission", ({ context }) => context.grantPermissions(["clipboard-read"])],
  ["a key that is still down", ({ page }) => page.keyboard.down("Shift")],
  ["another origin", ({ page }) => page.goto(world.url.replace("127.0.0.1", "localhost"))],
  ["a closed page", ({ page }) => page.close()],
])("%s ends with its visitor", async (_name, leaveBehind) => {
  const first = await chromium.visitor();
  await leaveBehind(first);
  await first.close();
  const second = await chromium.visitor();
  expect(second.page).not.toBe(first.page);
  expect(first.context.pages()).toEqual([]);
  await second.close();
});

test("whoever asks for looks of their own or a fresh browser gets it, and leaves it to nobody", async () => {
  for (const options of [{ fresh: true }, { colorScheme: "dark" }] as const) {
    const own = await chromium.visitor(options);
    await own.close();
    expect(own.context.pages()).toEqual([]);
  }
});
