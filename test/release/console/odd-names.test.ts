// Names that are as long as they may be and longer, run from right to left or are pictures; and a device with four hundred apps.
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRig, type Rig } from "../../features/apps/kit.ts";
import { findingsInPlaces } from "../../kit/browser/chromium.ts";
import { openConsole } from "../../kit/browser/console.ts";
import { createLogger, line } from "../../portal/workloads/logger.ts";

const { world, chromium } = await openConsole();
const APPS = 400;
const LONG = "W".repeat(200);
const ARABIC = `جهاز الطابق العلوي ${"طويل".repeat(15)}`;
const EMOJI = "👩‍👩‍👧‍👦".repeat(12);
/** Not even a space to break at; longer than the API takes, as an earlier release may have stored it. */
const NAMES = [LONG, ARABIC, EMOJI];

let rig: Rig;
let appId: string;
let devices: readonly string[];
beforeAll(async () => {
  const logger = createLogger(world, [line("listening")]);
  rig = await openRig(world, { handlers: logger.handlers });
  const { deploymentId } = await rig.deploy({ name: "store" });
  ({ appId } = await rig.until(`/deployments/${deploymentId}`, "active"));
  const others = [await rig.tenant.device(), await rig.tenant.device()];
  devices = [rig.device, ...others].map(({ deviceId }) => deviceId);
  for (const [at, deviceId] of devices.entries()) await world.sql.query("update devices set name = $2 where device_id = $1", [deviceId, NAMES[at]]);
  await world.sql.query("update tenants set name = $2 where tenant_id = $1", [rig.tenant.tenantId, LONG]);
  await world.sql.query(
    `insert into apps select (jsonb_populate_record(a, jsonb_build_object('app_id', overlay(app_id placing lpad(n::text, 4, '0') from 27), 'deployment_id', null,
      -- They are sealed for the app that is copied.
      'secrets', null, 'secret_keys', array[]::text[],
      'name', case n % 3 when 0 then $2 when 1 then $3 else $4 end || n))).* from apps a, generate_series(2, ${APPS}) n where a.app_id = $1`,
    [appId, ...NAMES],
  );
}, 60_000);
afterAll(async () => {
  await rig?.stop();
});

test("no name breaks a page, in any look", { timeout: 120_000 }, async () => {
  const { page, problems, signIn, go, close } = await chromium.visitor();
  await signIn(rig.tenant.ownerId, { path: "/devices" });
  const [first, second, third] = devices;
  const found = await findingsInPlaces({ page, go }, [
    ["/devices", LONG],
    [`/devices/${first}`, LONG],
    [`/devices/${second}`, ARABIC],
    [`/devices/${third}`, EMOJI],
    ["/apps?sort=name", LONG],
    [`/apps/${appId.slice(0, -4)}0003`, `${LONG}3`],
    ["/", "Overview"],
  ]);
  expect(found).toEqual([]);
  expect(problems).toEqual([]);
  await close();
});

test("a device with 400 apps shows the few that matter, and all of them without drawing them", async () => {
  const { page, problems, signIn, go, close } = await chromium.visitor();
  await signIn(rig.tenant.ownerId, { path: `/devices/${devices[0]}` });
  const apps = page.getByRole("region", { name: "Apps", exact: true });
  await apps.getByRole("link", { name: `All ${APPS}` }).waitFor();
  expect(await apps.getByRole("row").count()).toBeLessThanOrEqual(10);
  await go(`/devices/${devices[0]}?tab=apps`);
  const grid = page.getByRole("grid", { name: "Apps" });
  await grid.focus();
  await page.keyboard.press("End");
  await grid
    .locator(`[aria-rowindex="${APPS + 1}"]`)
    .getByText(/store|W|👩|جهاز/)
    .first()
    .waitFor();
  expect(await grid.getByRole("row").count()).toBeLessThan(60);
  expect(problems).toEqual([]);
  await close();
});
