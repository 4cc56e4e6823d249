// The pictures of README, and the sheet of all places: `npm run docs:screenshots` takes them again; here README's are only opened.
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
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
  if (isWriting) await haveADay();
}, 180_000);
afterAll(async () => {
  await populated?.stop();
});

/** As if the gateway had counted for a day, and somebody had hidden the first steps. */
const haveADay = async (): Promise<void> => {
  await world.call(await tenant.user(), "PATCH", `/v1/tenants/${tenant.tenantId}/settings`, { body: { setupHidden: true } });
  await world.sql.query(
    `insert into overview_points (tenant_id, slot, at, online, offline, apps_in_error, commands, fresh_backups, late_backups)
     select $1, (extract(epoch from at) / 1800)::int8 % 48, at, 90 - n % 7 - n % 3, 5 + n % 7 + n % 3, n % 4, 900 + n % 11 * 90 - n % 5 * 60, 40 - n % 3, n % 3
       from generate_series(0, 47) n, lateral (select to_timestamp(floor(extract(epoch from now()) / 1800) * 1800 - n * 1800) as at) t
     on conflict (tenant_id, slot) do update set at = excluded.at, online = excluded.online, offline = excluded.offline, commands = excluded.commands`,
    [tenant.tenantId],
  );
};

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
    if (name === "command") await page.getByText("succeeded").first().waitFor();
    await page.screenshot({ path: `${FOLDER}${name}.png` });
  }
  expect(problems).toEqual([]);
  await close();

  const file = `docs/pictures/${name}.png`;
  expect(await readFile(fileURLToPath(new URL("../../../README.md", import.meta.url)), "utf8")).toContain(`(${file})`);
  expect((await stat(`${FOLDER}${name}.png`)).size).toBeLessThan(MAX_BYTES);
});

const SHEET = "docs/pictures/places.jpg";
const MAX_SHEET_BYTES = 400 * 1_024;
const PLACES = ["/", "/devices", "/apps", "/catalogue", "/pair", "/rollouts", "/commands", "/backups", "/network", "/alerts", "/events", "/cost"];

/** Each place as it is, small, one beside the other; every second one dark. */
const takeSheet = async (): Promise<Buffer> => {
  const shots: string[] = [];
  for (const [at, path] of PLACES.entries()) {
    const { page, signIn, close } = await chromium.visitor({ colorScheme: at % 2 === 0 ? "light" : "dark" });
    await signIn(tenant.ownerId, { path });
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.getByRole("status").getByText("live", { exact: true }).waitFor();
    shots.push((await page.screenshot({ type: "jpeg", quality: 80 })).toString("base64"));
    await close();
  }
  const page = await (await chromium.visitor()).context.newPage();
  await page.setViewportSize({ width: 1_500, height: 1_260 });
  const images = shots.map((shot) => `<img width="480" height="300" style="border:1px solid #889" src="data:image/jpeg;base64,${shot}">`);
  await page.setContent(`<body style="margin:12px;display:grid;grid-template-columns:repeat(3,480px);gap:12px;background:#dde">${images.join("")}</body>`);
  return page.screenshot({ type: "jpeg", quality: 72, fullPage: true });
};

test("the sheet of all places is small enough to be looked at", async () => {
  if (isWriting) await writeFile(fileURLToPath(new URL(`../../../${SHEET}`, import.meta.url)), await takeSheet());
  const { size } = await stat(fileURLToPath(new URL(`../../../${SHEET}`, import.meta.url)));
  expect(size).toBeGreaterThan(50_000);
  expect(size).toBeLessThan(MAX_SHEET_BYTES);
});
