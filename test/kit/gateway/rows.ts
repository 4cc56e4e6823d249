// Rows for tests that write past the API: a row of any table, with the parents that the database asks for.
import { randomBytes, randomUUID } from "node:crypto";

type Values = Readonly<Record<string, unknown>>;
/** A `Db`, or a client or pool of the driver. */
export interface RowSql {
  // biome-ignore lint/suspicious/noExplicitAny: the two kinds answer with rows in different wrappings
  query(text: string, values?: any): Promise<any>;
}

export interface ForeignKey {
  readonly name: string;
  readonly child: string;
  readonly columns: readonly string[];
  readonly parent: string;
  readonly parentColumns: readonly string[];
  /** As pg_constraint spells it: a, r, c, n or d. */
  readonly onDelete: string;
}
interface Column {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly nullable: boolean;
}
interface Table {
  readonly columns: readonly Column[];
  readonly foreignKeys: readonly ForeignKey[];
}

const rowsOf = async (sql: RowSql, text: string, values: readonly unknown[] = []): Promise<Values[]> => {
  const answer = await sql.query(text, values);
  return Array.isArray(answer) ? answer : answer.rows;
};

const namesOf = (relation: string, numbers: string): string =>
  `array(select attname::text from unnest(${numbers}) with ordinality as n(number, place) join pg_attribute on attrelid = ${relation} and attnum = number order by place)`;

/** Those with the fewest columns first. */
export const readForeignKeys = async (sql: RowSql): Promise<readonly ForeignKey[]> =>
  (await rowsOf(
    sql,
    `select conname as name, conrelid::regclass::text as child, ${namesOf("conrelid", "conkey")} as columns, confrelid::regclass::text as parent,
       ${namesOf("confrelid", "confkey")} as "parentColumns", confdeltype::text as "onDelete"
     from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace order by cardinality(conkey), conname`,
  )) as unknown as ForeignKey[];

const readTable = async (sql: RowSql, name: string): Promise<Table> => ({
  columns: (await rowsOf(
    sql,
    `select column_name as name, udt_name as type, is_nullable = 'YES' as nullable, is_nullable = 'NO' and column_default is null as required
       from information_schema.columns where table_schema = 'public' and table_name = $1`,
    [name],
  )) as unknown as Column[],
  foreignKeys: (await readForeignKeys(sql)).filter(({ child }) => child === name),
});

/** What each connection has read. Files that share this module use several databases, and those of migrations have older tables. */
const read = new WeakMap<RowSql, Map<string, Promise<Table>>>();
const tableOf = (sql: RowSql, name: string): Promise<Table> => {
  const tables = read.get(sql) ?? new Map<string, Promise<Table>>();
  read.set(sql, tables);
  const known = tables.get(name) ?? readTable(sql, name);
  tables.set(name, known);
  return known;
};

const SAMPLES: Readonly<Record<string, (column: string) => unknown>> = {
  text: (column) => `${column}_${randomUUID()}`,
  bytea: () => randomBytes(32),
  json: () => "{}",
  jsonb: () => "{}",
  timestamptz: () => new Date(),
  date: () => "2026-01-01",
  bool: () => false,
  int2: () => 1,
  int4: () => 1,
  int8: () => 1,
  float8: () => 1,
};

const sampleOf = ({ name, type }: Column): unknown => {
  const sample = SAMPLES[type];
  if (sample === undefined) throw new Error(`no sample of ${type} for ${name}`);
  return sample(name);
};

const find = async (sql: RowSql, table: string, known: Values): Promise<Values | undefined> => {
  const names = Object.keys(known);
  if (names.length === 0) return undefined;
  const [row] = await rowsOf(
    sql,
    `select * from ${table} where ${names.map((name, at) => `${name} = $${at + 1}`).join(" and ")} limit 1`,
    Object.values(known),
  );
  return row;
};

/** What the row says, samples for the rest that has to be there, and parents: found by what the row says of them, or made. */
export const sampleRow = async (sql: RowSql, table: string, given: Values = {}): Promise<Values> => {
  const { columns, foreignKeys } = await tableOf(sql, table);
  const row: Record<string, unknown> = { ...given };
  const isNeeded = ({ columns: names }: ForeignKey): boolean =>
    names.every((name) => row[name] != null || columns.some((column) => column.name === name && column.required));
  for (const key of foreignKeys.filter(isNeeded)) {
    const known = Object.fromEntries(key.columns.flatMap((name, at) => (row[name] == null ? [] : [[key.parentColumns[at], row[name]]])));
    const parent =
      (await find(sql, key.parent, known)) ?? (await write(sql, key.parent, known, "on conflict do nothing")) ?? (await find(sql, key.parent, known));
    for (const [at, name] of key.columns.entries()) row[name] = parent?.[key.parentColumns[at] ?? ""];
  }
  for (const column of columns) if (column.required) row[column.name] ??= sampleOf(column);
  return row;
};

/** Writes the row as it is. */
export const writeRow = async (sql: RowSql, table: string, row: Values, tail = ""): Promise<Values | undefined> => {
  const names = Object.keys(row);
  const [written] = await rowsOf(
    sql,
    `insert into ${table} (${names.join(", ")}) values (${names.map((_name, at) => `$${at + 1}`).join(", ")}) ${tail} returning *`,
    Object.values(row),
  );
  return written;
};

const write = async (sql: RowSql, table: string, given: Values, tail = ""): Promise<Values | undefined> =>
  writeRow(sql, table, await sampleRow(sql, table, given), tail);

/** A row with what is given, and its parents where they are missing. */
export const insertRow = async (sql: RowSql, table: string, given: Values = {}): Promise<Values> => {
  const row = await write(sql, table, given);
  if (row === undefined) throw new Error(`${table} took no row`);
  return row;
};
