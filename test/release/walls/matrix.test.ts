// Access as the contract declares it: every operation × caller × whose id. A control takes the permission checks of ten operations away.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Operation, permissionsOf, permits } from "../../../protocol/index.ts";
import { CASES, openStock, type Stock } from "../../contract/samples.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { type Cell, cellsOf, openCallers, type Standing, violations } from "./matrix.ts";

const FREE = {
  RATE_LIMIT_ANONYMOUS: "off",
  RATE_LIMIT_PAIRING: "off",
  RATE_LIMIT_AGENT: "off",
  RATE_LIMIT_HEARTBEAT: "off",
  RATE_LIMIT_FAILED_AUTH: "off",
  RATE_LIMIT_INVITES: "off",
  TENANTS_PER_USER: "100",
};
let world: World;
let ours: Stock;
let theirs: Stock;
let callers: readonly Standing[];
beforeAll(async () => {
  world = await startWorld(FREE, { inProcess: true });
  ours = await openStock(world);
  theirs = await openStock(world);
  callers = await openCallers(ours, theirs);
});
afterAll(() => world.close());

const cells: Cell[] = [];

describe("the declared access holds for every caller and id", () => {
  test.each(CASES.map((each) => [each.id, each] as const))("%s", async (_, each) => {
    const own = await cellsOf(each, callers, theirs);
    cells.push(...own);
    expect(await violations(own, ours, theirs)).toEqual([]);
  });

  test("the matrix has a cell for every operation and caller, and a foreign and an unknown id wherever an operation takes one", () => {
    expect(new Set(cells.map(({ each, caller }) => `${each.id} ${caller.name}`)).size).toBe(CASES.length * callers.length);
    const counted = Object.fromEntries(["own", "foreign", "unknown"].map((whose) => [whose, cells.filter((cell) => cell.whose === whose).length]));
    expect(counted).toMatchObject({ own: CASES.length * callers.length, foreign: counted["unknown"] });
    expect(cells.length).toBeGreaterThan(2_000);
  });
});

describe("control: a gateway that does not check a permission", () => {
  const guarded = CASES.filter(({ op }) => ["platform", ...permissionsOf("owner").filter((each) => !permits("viewer", each))].includes(op.permission));
  const some = guarded.filter((_, n) => n % Math.floor(guarded.length / 10) === 0).slice(0, 10);

  test.each(some.map((each) => [each.id, each] as const))("%s turns the matrix red", async (_, each) => {
    // The world's own table; the contract, from which the promises come, stays as it is.
    const entry: { op: Operation } | undefined = world.app.entries.find(({ id }) => id === each.id);
    if (entry === undefined) throw new Error(`${each.id} is not served`);
    entry.op = { ...each.op, permission: "self" };
    const found = await violations(await cellsOf(each, callers, theirs), ours, theirs);
    entry.op = each.op;
    expect(found).not.toEqual([]);
  });
});
