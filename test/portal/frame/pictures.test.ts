// README's pictures: `npm run docs:screenshots` takes them again; here they are only opened.
import { mkdir, readFile, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openConsole } from "../../kit/browser/console.ts";
import { type Populated, populate } from "../../kit/gateway/populated.ts";
import type { TestTenant } from "../../kit/gateway/world.ts";

const FOLDER = fileURLToPath(new URL("../../../docs/pictures/", import.meta.url));
const MAX_BYTES = 200 * 1_024;
const isWriting = process.env["WRITE_PICTURES"] !== undefined;
const DEVICES = isWriting ? 120 : 4;

const { world, chromium } = await openConsole();
let tenant: TestTenant;
let populated: Populated;
beforeAll(async () => {
  tenant = await world.tenant();
  populated = await populate(world, tenant, { devices: DEVICES, hostile: false });
}, 180_000);
afterAll(async () => {
  await populated?.stop();
});

const PICTURES = [
  { name: "overview", colorScheme: "dark", path: () => "/", shows: "Activity" },
  {
    name: "command",
    colorScheme: "light",
    path: () => `/devices/${populated.waiting.deviceId}?command=${populated.waiting.commandId}`,
    shows: "restart-app",
  },
] as const;

test.each(PICTURES)("README shows $name", async ({ name, colorScheme, path, shows }) => {
  const { page, problems, signIn, close } = await chromium.visitor({ colorScheme });
  await signIn(tenant.ownerId, { path: path() });
  await page.getByText(shows).first().waitFor();
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  if (isWriting) {
    await mkdir(FOLDER, { recursive: true });
    for (const deviceId of populated.deviceIds) await world.call(await tenant.user(), "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } });
    await page.getByText("succeeded").first().waitFor();
    await page.screenshot({ path: `${FOLDER}${name}.png` });
  }
  expect(problems).toEqual([]);
  await close();

  const file = `docs/pictures/${name}.png`;
  expect(await readFile(fileURLToPath(new URL("../../../README.md", import.meta.url)), "utf8")).toContain(`(${file})`);
  expect((await stat(`${FOLDER}${name}.png`)).size).toBeLessThan(MAX_BYTES);
});
