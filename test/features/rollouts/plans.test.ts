// The statements of a step read by keys: their work follows what is under way, not the devices of the tenant or of the rollout, also before PostgreSQL has
// learned how many there are.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SqlTx } from "../../../server/core/events.ts";
import { findOpen, findWaitingMembers, saveMembers } from "../../../server/features/rollouts/store/members.ts";
import type { World } from "../../kit/gateway/world.ts";
import { create, type Fleet, openFleet, startRolloutWorld, step } from "./kit.ts";

const SIZE = 2_000;
const UNDER_WAY = 5;

let world: World;
let fleet: Fleet;
let rolloutId: string;
beforeAll(async () => {
  world = await startRolloutWorld();
  fleet = await openFleet(world, SIZE);
  rolloutId = await create(fleet, {});
  await step(fleet, 3);
});
afterAll(() => world.close());

interface Node {
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Node[];
}
/** The rows that a plan has read of each table. */
const readBy = (node: Node, rows = new Map<string, number>()): ReadonlyMap<string, number> => {
  const table = node["Relation Name"];
  const read = (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"];
  if (table !== undefined) rows.set(table, (rows.get(table) ?? 0) + read);
  for (const child of node.Plans ?? []) readBy(child, rows);
  return rows;
};

/** What the statement of this call reads. It is executed, and then undone. */
const readOf = async (call: (tx: SqlTx) => Promise<unknown>): Promise<ReadonlyMap<string, number>> => {
  let read: ReadonlyMap<string, number> = new Map();
  const query = async (text: unknown, values: readonly unknown[]): Promise<never[]> => {
    const client = await world.sql.connect();
    try {
      await client.query("begin");
      const { rows } = await client.query(`explain (analyze, format json) ${String(text)}`, [...values]);
      read = readBy(rows[0]["QUERY PLAN"][0].Plan);
      await client.query("rollback");
    } finally {
      client.release();
    }
    return [];
  };
  await call({ query } as unknown as SqlTx); // as: the statements need nothing else
  return read;
};

test(`of ${SIZE} devices a step reads the ${UNDER_WAY} that are under way, and those that it orders`, async () => {
  const { tenantId } = fleet.tenant;
  const open = await readOf((tx) => findOpen(tx, { tenantId }, rolloutId));
  expect([open.get("devices"), open.get("commands")]).toEqual([UNDER_WAY, UNDER_WAY]);

  const turn = { rolloutId, bound: SIZE, limit: 20, fleet: null, now: new Date() };
  const waiting = await readOf((tx) => findWaitingMembers(tx, { tenantId }, turn));
  expect(waiting.get("devices")).toBe(20);

  const changes = fleet.deviceIds.slice(0, 20).map((deviceId) => ({ deviceId, status: "skipped" as const }));
  const saved = await readOf((tx) => saveMembers(tx, { tenantId }, rolloutId, changes));
  // The row that changes counts as read once more.
  expect(saved.get("rollout_devices")).toBeLessThanOrEqual(2 * changes.length);
});
