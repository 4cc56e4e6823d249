// Reads name people: beside each id of somebody who did something stands the actor, with a name.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { ACTOR_FIELDS, contract, type Operation } from "../../protocol/index.ts";
import type { SqlTx } from "../../server/core/events.ts";
import { withActors } from "../../server/core/people/actors.ts";
import { asKey, startWorld, type World } from "../kit/gateway/world.ts";

/** Answers that name nobody, each for a reason. */
const NAMELESS: ReadonlyMap<string, string> = new Map([
  ["commands.list", "agents read it, too, and pages of commands for people (`listAll`, `getMany`) name the creator"],
  ["commands.get", "agents read it, too, and the timeline names the creator"],
  ["commands.getOnDevice", "agents read it, too, and the timeline names the creator"],
]);

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly [name: string]: unknown;
}
const isSchema = (value: unknown): value is Schema => typeof value === "object" && value !== null;
const isActor = (schema: Schema | undefined): boolean => schema !== undefined && JSON.stringify(schema).includes('"apiKey"');

/** The ids of actors that stand alone in a schema. */
const alone = (schema: unknown): string[] => {
  if (!isSchema(schema)) return [];
  const properties = schema.properties ?? {};
  const own = Object.entries(ACTOR_FIELDS).flatMap(([id, actor]) =>
    isSchema(properties[id]) && !isActor(properties[id]) && !isActor(properties[actor]) ? [id] : [],
  );
  return [...own, ...Object.values(schema).flatMap((each) => (Array.isArray(each) ? each.flatMap(alone) : alone(each)))];
};

const OPERATIONS = Object.entries(contract).flatMap(([group, { operations }]) =>
  Object.entries<Operation>(operations).map(([name, op]) => ({ id: `${group}.${name}`, op })),
);

const namelessIn = ({ id, op }: { readonly id: string; readonly op: Operation }): string[] =>
  alone(z.toJSONSchema(op.output, { unrepresentable: "any", io: "output" })).map((field) => `${id}: ${field}`);

test("each read that shows who did something names them", () => {
  const reads = OPERATIONS.filter(({ op }) => op.kind === "query" && op.tenancy === "tenant");
  expect(reads.filter(({ id }) => !NAMELESS.has(id)).flatMap(namelessIn)).toEqual([]);
  expect(reads.filter(({ id }) => NAMELESS.has(id)).map((read) => namelessIn(read).length)).toEqual([...NAMELESS].map(() => 1));
});

describe("names", () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld({}, { inProcess: true });
  });
  afterAll(() => world.close());

  test("reads name people, keys, agents and the system, and say who is gone", async () => {
    const tenant = await world.tenant();
    const owner = await tenant.user();
    const { deviceId } = await tenant.device();
    const made = await world.call(owner, "POST", "/v1/api-keys", { body: { name: "backup script", role: "admin" } });
    const { keyId, apiKey } = made.body.data;
    const fleet = await world.call(asKey(apiKey, tenant.tenantId), "POST", "/v1/fleets", { body: { name: "Shops", deviceIds: [deviceId] } });
    const path = `/v1/fleets/${fleet.body.data.fleetId}`;
    const read = async () => (await world.call(owner, "GET", path)).body.data.actor;
    expect(await read()).toEqual({ kind: "apiKey", id: keyId, name: "backup script", deleted: false });
    expect((await world.call(owner, "GET", "/v1/fleets")).body.data[0].actor).toEqual(await read());
    await world.call(owner, "DELETE", `/v1/api-keys/${keyId}`);
    expect(await read()).toEqual({ kind: "apiKey", id: keyId, name: "backup script", deleted: true });

    const sql = counted(world);
    await world.sql.query("update devices set hostname = 'attic' where device_id = $1", [deviceId]);
    const ids = [`user:${tenant.ownerId}`, "user:who-left", keyId, deviceId, "agt_unknown", "system", "auto"];
    const [seen, elsewhere] = await Promise.all([
      withActors(
        sql,
        { tenantId: tenant.tenantId },
        ids.map((createdBy) => ({ createdBy })),
      ),
      withActors(sql, { tenantId: (await world.tenant()).tenantId }, [{ createdBy: keyId }, { createdBy: deviceId }]),
    ]);
    expect(seen.map(({ actor: { kind, name, deleted } }) => [kind, name, deleted])).toEqual([
      ["user", expect.stringContaining("@"), false],
      ["user", null, true],
      ["apiKey", "backup script", true],
      ["agent", "attic", false],
      ["agent", null, true],
      ["system", null, false],
      ["system", null, false],
    ]);
    expect(elsewhere.map(({ actor }) => actor.name)).toEqual([null, null]);
  });

  test("one statement names all actors of a page, and none runs for a page without any", async () => {
    const { tenantId, ownerId } = await world.tenant();
    const sql = counted(world);
    const alerts = Array.from({ length: 100 }, (_, n) => ({ acknowledgedBy: n % 2 === 0 ? null : `user:${ownerId}`, resolvedBy: n === 3 ? "auto" : null }));
    const seen = await withActors(sql, { tenantId }, alerts);
    expect(sql.asked()).toBe(1);
    expect([seen[0]?.acknowledgedByActor, seen[1]?.acknowledgedByActor?.kind, seen[3]?.resolvedByActor?.kind]).toEqual([null, "user", "system"]);
    expect(await withActors(sql, { tenantId }, [{ name: "nobody" }])).toEqual([{ name: "nobody" }]);
    expect(sql.asked()).toBe(1);
  });
});

const counted = ({ sql }: World): SqlTx & { asked(): number } => {
  let asked = 0;
  return {
    query: async (text, values = []) => {
      asked += 1;
      return (await sql.query(text, [...values])).rows;
    },
    asked: () => asked,
  };
};
