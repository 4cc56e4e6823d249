// The wall between tenants in Prisma calls: generated over every model with a tenant and every operation, so that a new model is inside from its first day.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Prisma } from "../../../prisma/generated/client.ts";
import { systemClock } from "../../../server/core/clock.ts";
import type { OperationName, TenantModelName } from "../../../server/core/database.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { createTestDatabase, withClient } from "../../kit/stores/database.ts";

let url = "";
let db: Db;
beforeAll(async () => {
  url = await createTestDatabase();
  db = await openDb({ clock: systemClock, url, poolSize: 4, log: silentLog });
  // The wall stands without help of PostgreSQL's: rows of any tenant, with whatever else in them.
  await withClient(url, (client) =>
    client.query(`do $$ declare c record; begin
      for c in select conrelid::regclass as t, conname from pg_constraint where contype in ('f', 'c') and connamespace = 'public'::regnamespace
      loop execute format('alter table %s drop constraint %I', c.t, c.conname); end loop;
      for c in select tgrelid::regclass as t, tgname from pg_trigger where not tgisinternal
      loop execute format('drop trigger %I on %s', c.tgname, c.t); end loop; end $$`),
  );
});
afterAll(() => db.close());

const [OWN, OTHER] = [{ tenantId: "ten_own" }, { tenantId: "ten_other" }] as const;
type Row = Record<string, unknown>;
// biome-ignore lint/suspicious/noExplicitAny: every model by the same code
type Any = any;

const MODELS = Object.values(Prisma.ModelName).filter((name): name is TenantModelName => "tenantId" in Prisma[`${name}ScalarFieldEnum`]);
const key = (model: string): string => model.charAt(0).toLowerCase() + model.slice(1);

interface Column {
  readonly name: string;
  readonly field: string;
  readonly type: string;
  readonly isNeeded: boolean;
  /** Its place in the primary key; 0 outside of it. */
  readonly keyPlace: number;
}
const columnsOf = new Map<string, readonly Column[]>();

const sampleOf = ({ type, name }: Column, salt: string): unknown => {
  if (type === "text") return `${name}-${salt}`;
  if (type === "bytea") return new Uint8Array(Buffer.from(`${name}-${salt}`));
  if (type === "jsonb") return { salt };
  if (type.startsWith("timestamp")) return new Date("2030-01-01T00:00:00.000Z");
  if (type === "boolean") return false;
  // Another number for each salt: a number, or a day, may be all that tells two rows' keys apart.
  const number = Buffer.from(salt).reduce((sum, byte) => sum + byte, 0);
  return type === "date" ? new Date(Date.UTC(2030, 0, number)) : number;
};

const rowOf = (model: string, tenantId: string, salt = tenantId): Row => {
  const row: Row = {};
  for (const column of columnsOf.get(model) ?? []) if (column.isNeeded) row[column.field] = sampleOf(column, salt);
  return { ...row, ...("tenantId" in Prisma[`${model as TenantModelName}ScalarFieldEnum`] ? { tenantId } : {}) };
};
/** A unique condition that finds exactly this row, and a field that an update may change. */
const whereOf = (model: string, row: Row): Row => {
  const keys = keysOf(model);
  const where = plainWhere(model, row);
  return keys.length === 1 ? where : { [keys.join("_")]: where };
};
const keysOf = (model: string): readonly string[] =>
  (columnsOf.get(model) ?? [])
    .filter(({ keyPlace }) => keyPlace > 0)
    .sort((a, b) => a.keyPlace - b.keyPlace)
    .map(({ field }) => field);
/** A tenant and its settings are known by the tenant's id; elsewhere the tenant is left out. */
const plainWhere = (model: string, row: Row): Row =>
  Object.fromEntries(
    keysOf(model)
      .filter((field) => field !== "tenantId" || keysOf(model).length === 1)
      .map((field) => [field, row[field]]),
  );
const changeOf = (model: string): Row => {
  const column = columnsOf.get(model)?.find(({ keyPlace, field, isNeeded, type }) => isNeeded && keyPlace === 0 && field !== "tenantId" && type !== "boolean");
  return column === undefined ? {} : { [column.field]: sampleOf(column, "changed") };
};

beforeAll(async () => {
  const rows = await db.query<{ table: string; name: string; type: string; needed: boolean; place: number }>(
    `select c.table_name as table, c.column_name as name, c.data_type as type, c.is_nullable = 'NO' and c.column_default is null as needed,
       coalesce(k.ordinal_position, 0)::int as place
     from information_schema.columns c
       left join information_schema.key_column_usage k on k.table_name = c.table_name and k.column_name = c.column_name and k.constraint_name like '%\\_pkey'
     where c.table_schema = 'public' and c.table_name not like '\\_%' order by c.ordinal_position`,
  );
  const snake = (text: string): string => text.replace(/[A-Z]/g, (letter, at: number) => `${at === 0 ? "" : "_"}${letter.toLowerCase()}`);
  for (const model of MODELS) {
    const fields = Object.keys(Prisma[`${model}ScalarFieldEnum`]);
    const table = [...new Set(rows.map((row) => row.table))].find((name) => {
      const columns = rows.filter((row) => row.table === name).map((row) => row.name);
      return columns.length === fields.length && fields.every((field) => columns.includes(snake(field)));
    });
    expect(table, `the table of ${model}`).toBeDefined();
    columnsOf.set(
      model,
      fields.map((field) => {
        const row = rows.find((each) => each.table === table && each.name === snake(field));
        return { name: snake(field), field, type: row?.type ?? "", isNeeded: row?.needed === true, keyPlace: row?.place ?? 0 };
      }),
    );
  }
});

/** A row of each tenant, and nothing else: no constraint is left that ties one model's rows to another's. */
const freshRows = async ({ system }: Clients, model: string): Promise<readonly [own: Row, other: Row]> => {
  const delegate = (system as Any)[key(model)];
  await delegate.deleteMany();
  return delegate.createManyAndReturn({ data: [rowOf(model, OWN.tenantId), rowOf(model, OTHER.tenantId)] });
};

/** What each operation is given to reach for a row. */
const CALLS: Record<OperationName, ((model: string, row: Row) => Row) | null> = {
  findFirst: (model, row) => ({ where: plainWhere(model, row) }),
  findFirstOrThrow: (model, row) => ({ where: plainWhere(model, row) }),
  findMany: (model, row) => ({ where: { OR: [plainWhere(model, row)] } }),
  count: (model, row) => ({ where: plainWhere(model, row) }),
  aggregate: (model, row) => ({ where: plainWhere(model, row), _count: { _all: true } }),
  groupBy: (model, row) => ({ by: ["tenantId"], where: plainWhere(model, row) }),
  update: (model, row) => ({ where: whereOf(model, row), data: changeOf(model) }),
  updateMany: (model, row) => ({ where: plainWhere(model, row), data: changeOf(model) }),
  updateManyAndReturn: (model, row) => ({ where: plainWhere(model, row), data: changeOf(model) }),
  delete: (model, row) => ({ where: whereOf(model, row) }),
  deleteMany: (model, row) => ({ where: plainWhere(model, row) }),
  create: null,
  createMany: null,
  createManyAndReturn: null,
  upsert: null,
};
const READS = new Set<OperationName>(["findFirst", "findFirstOrThrow", "findMany", "count", "aggregate", "groupBy"]);

const outcomeOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: { code?: string }) => ({ code: error.code ?? error }));
/** Nothing found, nothing counted, nothing changed. */
const NOTHING: readonly unknown[] = [null, [], 0, { _count: { _all: 0 } }, { count: 0 }, { code: "P2025" }];
type Clients = Pick<Db, "for" | "system">;
/** All calls of a test run in one transaction, or each on its own. None fails in PostgreSQL, which would end the transaction. */
const both: readonly (readonly [place: string, within: (run: (clients: Clients) => Promise<void>) => Promise<void>])[] = [
  ["outside of a transaction", (run) => run(db)],
  ["inside of a transaction", (run) => db.tx(run)],
];
const callOf =
  (clients: Clients) =>
  (model: string, operation: string, args: Row): Promise<unknown> =>
    (clients.for(OWN) as Any)[key(model)][operation](args);
const reaching = (Object.keys(CALLS) as OperationName[]).filter((operation) => CALLS[operation] !== null);

describe.each(both)("%s", (_place, within) => {
  test.each(MODELS)("no operation on %s reads or changes another tenant's row, and each reaches the tenant's own", (model) =>
    within(async (clients) => {
      const call = callOf(clients);
      const [own, other] = await freshRows(clients, model);
      const stored = (): Promise<Row> => (clients.system as Any)[key(model)].findMany({ where: OTHER });
      for (const operation of reaching) {
        const args = CALLS[operation]?.(model, other) ?? {};
        // A tenant is found by its own id, which names another tenant here.
        if (keysOf(model).join() !== "tenantId") expect(NOTHING, `${operation} on ${model}`).toContainEqual(await outcomeOf(call(model, operation, args)));
        await expect(call(model, operation, { ...args, where: { ...(args["where"] as Row), ...OTHER } }), operation).rejects.toThrow(/names another/);
      }
      // Read once: none of these operations would undo what another did.
      expect(await stored()).toEqual([other]);
      // The control: the same calls find and change what is the tenant's own.
      for (const operation of reaching.filter((name) => READS.has(name) || name.startsWith("update"))) {
        const outcome = await outcomeOf(call(model, operation, CALLS[operation]?.(model, own) ?? {}));
        expect(NOTHING, `${operation} on ${model}`).not.toContainEqual(outcome);
      }
      expect(await outcomeOf(call(model, "deleteMany", {}))).toEqual({ count: 1 });
      expect(await stored()).toEqual([other]);
    }),
  );

  test.each(MODELS)("a new row of %s belongs to the tenant, whatever the caller says", (model) =>
    within(async (clients) => {
      const call = callOf(clients);
      const rows = (clients.system as Any)[key(model)];
      await freshRows(clients, model);
      const { tenantId: _, ...fresh } = rowOf(model, OWN.tenantId, "fresh");
      for (const operation of ["create", "createMany", "createManyAndReturn"]) {
        await rows.deleteMany({ where: OWN });
        await call(model, operation, { data: operation === "create" ? fresh : [fresh] });
        await expect(call(model, operation, { data: { ...fresh, ...OTHER } })).rejects.toThrow(/names another/);
        expect(await rows.findMany({ select: { tenantId: true }, orderBy: { tenantId: "asc" } })).toEqual([OTHER, OWN]);
      }
    }),
  );

  test.each(MODELS)("a row of %s cannot be given to another tenant", (model) =>
    within(async (clients) => {
      const own = rowOf(model, OWN.tenantId);
      for (const operation of ["update", "updateMany", "updateManyAndReturn"] as const)
        await expect(callOf(clients)(model, operation, { ...CALLS[operation]?.(model, own), data: OTHER })).rejects.toThrow(/names another/);
    }),
  );

  test("an upsert meets the tenant's own row alone", () =>
    within(async (clients) => {
      const call = callOf(clients);
      const [, other] = await freshRows(clients, "Membership");
      const userId = other["userId"];
      const create = { ...rowOf("Membership", OWN.tenantId, "up"), userId };
      const upsert = { where: { tenantId_userId: { userId } }, create, update: { role: "changed" } };
      expect(await call("Membership", "upsert", upsert)).toMatchObject({ ...OWN, userId, role: "role-up" });
      expect(await call("Membership", "upsert", upsert)).toMatchObject({ ...OWN, userId, role: "changed" });
      expect(await clients.system.membership.findMany({ where: OTHER })).toEqual([other]);
      await expect(call("Membership", "upsert", { ...upsert, where: { memberId: "x" } })).rejects.toThrow(/begins with the tenant/);
      await expect(call("Membership", "upsert", { ...upsert, where: { tenantId_userId: { userId, ...OTHER } } })).rejects.toThrow(/names another/);
    }));

  test("rows are not written along with others, and no cursor is taken", () =>
    within(async (clients) => {
      const call = callOf(clients);
      await expect(call("Membership", "create", { data: { role: "x", tenant: { create: {} } } })).rejects.toThrow(/through its own model/);
      await expect(call("Membership", "findMany", { cursor: { memberId: "x" } })).rejects.toThrow(/cursor/);
    }));
});

test("a model without a tenant and an unnamed tenant are out of reach", async () => {
  expect("gatewayNode" in db.for(OWN)).toBe(false);
  expect("device" in db.for(OWN)).toBe(true);
  // @ts-expect-error: the type says so, too.
  db.for(OWN).gatewayNode;
  expect(() => db.for({ tenantId: "" as never })).toThrow(/without a tenant/);
  expect(() => db.for({ tenantId: undefined as never })).toThrow(/without a tenant/);
});
