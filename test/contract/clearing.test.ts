// PATCH clears an optional field with null and leaves all others unchanged.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startWorld, type World } from "../kit/gateway/world.ts";
import { ROLLOUT_SAMPLES } from "./samples/rollouts.ts";
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

/** Here null stands for another kind of record, or for one that has not begun: no change makes either. The target of a domain needs a tunnel, the probe of a mesh route lies in its network, and an agent has no configuration. */
const KINDS: ReadonlySet<string> = new Set([
  "fleets.update.selector",
  "deployments.change.deviceId",
  "domains.update.target",
  ...["port", "listenPort", "probe"].map((name) => `meshRoutes.update.${name}`),
  "rollouts.updatePolicy.configuration",
  "backups.reportChange.size",
  "backups.reportChange.checksum",
  "backupPolicies.change.destinationId",
]);

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
  targetVersion: "9.9.9",
  endsAt: "2030-01-01T00:00:00.000Z",
  expiresAt: "2030-01-01T00:00:00.000Z",
  maintenance: { enabled: true, until: "2030-01-01T00:00:00.000Z" },
  offlineAfterSeconds: 300,
  locale: "pt-PT",
  retainUntil: "2030-01-01T00:00:00.000Z",
  verify: { schedule: "@weekly", mode: "checksum" },
  timezone: "Europe/Lisbon",
  selector: { deviceIds: [], tags: ["site:home"], fleetIds: [] },
  scope: { deviceIds: [], tags: ["site:home"], fleetIds: [] },
  error: "no space left on the disk",
};

/** An id names a record that exists. */
const exampleOf = async (field: string): Promise<unknown> =>
  field === "updatePolicyId" ? (await ROLLOUT_SAMPLES["rollouts.getPolicy"](stock)).updatePolicyId : VALUES[field];

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
      const given = Object.fromEntries(await Promise.all(clearable(each).map(async (field) => [field, await exampleOf(field)])));
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
