// PATCH clears an optional field with null and leaves all others unchanged.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startWorld, type World } from "../kit/gateway/world.ts";
import { callerFor, openStock, REST_CASES, type Stock, sample, send, toRequest } from "./samples.ts";

let world: World;
let stock: Stock;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_PAIRING: "off", RATE_LIMIT_AGENT: "off" }, { inProcess: true });
  stock = await openStock(world);
});
afterAll(() => world.close());

interface Schema {
  readonly type?: string;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}
const schemaOf = (schema: z.ZodType, io: "input" | "output"): Schema => z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Schema;
const takesNull = ({ type, anyOf = [] }: Schema): boolean => type === "null" || anyOf.some(takesNull);

const PATCHES = REST_CASES.flatMap((each) => {
  const rest = each.op.rest.find((route) => route.startsWith("PATCH "));
  return rest === undefined ? [] : [{ ...each, rest }];
});

/** Here null stands for another kind of record, or for one that has not begun: no change makes either. */
const KINDS: ReadonlySet<string> = new Set(["fleets.update.selector", "deployments.change.deviceId"]);

/** Optional in the input, and absent or null in some records. */
const clearable = ({ id, op }: (typeof PATCHES)[number]): readonly string[] => {
  const [input, output] = [schemaOf(op.input, "input"), schemaOf(op.output, "output")];
  return Object.keys(input.properties ?? {}).filter((name) => {
    const shown = output.properties?.[name];
    return !KINDS.has(`${id}.${name}`) && !input.required?.includes(name) && shown !== undefined && (!output.required?.includes(name) || takesNull(shown));
  });
};

/** Values to clear. */
const VALUES: Readonly<Record<string, unknown>> = {
  name: "attic",
  maintenance: { enabled: true, until: "2030-01-01T00:00:00.000Z" },
  offlineAfterSeconds: 300,
  locale: "pt-PT",
  timezone: "Europe/Lisbon",
  selector: { deviceIds: [], tags: ["site:home"], fleetIds: [] },
  scope: { deviceIds: [], tags: ["site:home"], fleetIds: [] },
  error: "no space left on the disk",
};

/** The record without the fields that every change moves. */
const settled = ({ version: _version, updatedAt: _updatedAt, ...record }: Record<string, unknown>): Record<string, unknown> => record;

describe("PATCH", () => {
  test("has fields that null clears; the declarations tell which", () => {
    const found = PATCHES.flatMap((each) => clearable(each).map((name) => `${each.id}.${name}`));
    expect(found).toEqual(
      expect.arrayContaining(["devices.update.name", "devices.update.maintenance", "pairing.updateProgress.error", "pairing.updateDeviceProgress.error"]),
    );
  });

  test.each(PATCHES.flatMap((each) => clearable(each).map((name) => [each.id, name, each] as const)))(
    "%s clears %s with null and leaves every other field unchanged",
    async (_, name, each) => {
      const input = await sample(each, stock);
      const patch = async (fields: Record<string, unknown>) =>
        send(stock, callerFor(each, stock), "/v1", toRequest(each.op, { ...input, ...fields }, each.rest));
      const given = Object.fromEntries(clearable(each).map((field) => [field, VALUES[field]]));
      const before = await patch(given);
      expect(before.status).toBe(200);
      expect(before.body.data).toMatchObject(given);
      const { [name]: _own, ...rest } = input;
      const after = await send(stock, callerFor(each, stock), "/v1", toRequest(each.op, { ...rest, [name]: null }, each.rest));
      expect([after.status, after.body.data?.[name] ?? null]).toEqual([200, null]);
      const { [name]: _gone, ...kept } = settled(before.body.data);
      expect(settled(after.body.data)).toEqual(name in after.body.data ? { ...kept, [name]: null } : kept);
    },
  );
});
