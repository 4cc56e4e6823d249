// The wall around the devices of a limited caller in Prisma calls: over every model whose rows belong to a device, so that a new model is inside.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Prisma } from "../../../prisma/generated/client.ts";
import { createAccess } from "../../../server/core/access.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { newId } from "../../../server/core/ids.ts";
import type { SystemScope } from "../../../server/core/scope.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import { createTestDatabase } from "../../kit/stores/database.ts";

// biome-ignore lint/suspicious/noExplicitAny: every model by the same code
type Any = any;

const MODELS = Object.values(Prisma.ModelName)
  .filter((name) => {
    const columns: object = Prisma[`${name}ScalarFieldEnum`];
    return "tenantId" in columns && "deviceId" in columns;
  })
  .map((name) => name.charAt(0).toLowerCase() + name.slice(1));
const snake = (text: string): string => text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const tableOf = (model: string): string =>
  ({ devicePresence: "device_presence", queuedCommand: "command_queue" })[model] ?? `${snake(model)}s`.replace(/([^aeo])ys$/, "$1ies");

let db: Db;
const tenantId = newId("ten");
const [own, other] = [newId("dev"), newId("dev")];
const as = (selector: { deviceIds?: string[]; tags?: string[]; fleetIds?: string[]; rules?: object[] }): SystemScope => ({
  tenantId,
  principal: {
    kind: "user",
    userId: "u",
    email: null,
    ...createAccess("operator", [], [{ deviceIds: [], tags: [], fleetIds: [], rules: [], ...(selector as Any) }]),
  },
});

beforeAll(async () => {
  db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 2, log: silentLog });
  // Rows of any content will do.
  await db.query(`do $$ declare c record; begin
    for c in select conrelid::regclass as t, conname from pg_constraint where contype = 'c' and connamespace = 'public'::regnamespace
    loop execute format('alter table %s drop constraint %I', c.t, c.conname); end loop; end $$`);
  for (const [deviceId, tags, fleet_ids] of [
    [own, ["a", "b"], ["flt_a"]],
    [other, ["b"], ["flt_b"]],
  ] as const) {
    await insertRow(db, "devices", { device_id: deviceId, tenant_id: tenantId, tags, fleet_ids, platform: "linux" });
    for (const model of MODELS.filter((name) => name !== "device")) await insertRow(db, tableOf(model), { device_id: deviceId, tenant_id: tenantId });
  }
});
afterAll(() => db.close());

describe.each(MODELS)("%s", (model) => {
  const named = { where: { deviceId: { in: [own, other] } } };
  const idsOf = (rows: readonly { deviceId: string }[]) => rows.map(({ deviceId }) => deviceId);

  test.each([
    ["a tag", { tags: ["a"] }],
    ["an id", { deviceIds: [own] }],
    ["a fleet", { fleetIds: ["flt_a"] }],
    ["a fleet's selector", { rules: [{ tags: ["a", "b"], platform: "linux", agentVersion: null, status: null }] }],
  ])("reads, counts and changes only what %s selects", async (_, selector) => {
    const rows = (db.for(as(selector)) as Any)[model];
    expect(idsOf(await rows.findMany(named))).toEqual([own]);
    expect(await rows.count(named)).toBe(1);
    expect(await rows.findFirst({ where: { deviceId: other } })).toBeNull();
    expect((await rows.groupBy({ by: ["deviceId"], ...named })).length).toBe(1);
    expect((await rows.updateMany({ where: { deviceId: other }, data: model === "device" ? { name: "x" } : { deviceId: own } })).count).toBe(0);
    expect((await rows.deleteMany({ where: { deviceId: other } })).count).toBe(0);
    // An OR of the caller's own does not open the wall.
    expect(idsOf(await rows.findMany({ where: { deviceId: { in: [own, other] }, OR: [{ deviceId: other }, { deviceId: own }] } }))).toEqual([own]);
  });

  test("without the devices' ids it shows the same, or refuses", async () => {
    const rows = (db.for(as({ tags: ["a"] })) as Any)[model];
    const found = await rows.findMany().catch((error: Error) => error.message);
    if (typeof found === "string") expect(found).toContain("name the devices");
    else expect(idsOf(found)).toEqual([own]);
  });

  test("creates no row of a device out of sight", async () => {
    const rows = (db.for(as({ tags: ["a"] })) as Any)[model];
    await expect(rows.createMany({ data: [{ deviceId: other }] })).rejects.toMatchObject({ code: model === "device" ? "FORBIDDEN" : "DEVICE_NOT_FOUND" });
  });

  test("shows everything to a caller without limits", async () => {
    expect((await (db.for({ tenantId }) as Any)[model].findMany(named)).length).toBe(2);
  });
});

test("several limits hold together", async () => {
  const scope = as({ tags: ["b"] });
  const both = {
    ...scope,
    principal: {
      ...scope.principal,
      limits: [
        { deviceIds: [], tags: ["b"], fleetIds: [], rules: [] },
        { deviceIds: [own], tags: [], fleetIds: [], rules: [] },
      ],
    },
  } as Any as SystemScope;
  expect((await db.for(scope).device.findMany()).length).toBe(2);
  expect((await db.for(both).device.findMany()).map(({ deviceId }) => deviceId)).toEqual([own]);
});
