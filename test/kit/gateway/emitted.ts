// Notes which events the code under test writes into the outbox, so that a whole run can say which one no test has caused.
import { appendFileSync } from "node:fs";
import pg from "pg";
import { inject } from "vitest";
// Rows that a test writes by itself prove nothing, so this listens to the statements of those who emit.
import { INSERT_EVENTS } from "../../../server/core/rows/event-rows.ts";

const TYPE = /^[a-z_]+\.[a-z_]+$/;
const file = inject("emittedFile");
const noted = new Set<string>();
/** The types stand in one of the statement's arrays. */
const note = (values: readonly unknown[]): void => {
  for (const type of values.flatMap((value) => (typeof value === "string" && value.startsWith("{") ? value.slice(1, -1).split(",") : []))) {
    if (noted.has(type) || !TYPE.test(type)) continue;
    noted.add(type);
    appendFileSync(file, `${type}\n`);
  }
};

/** Keeps the driver's own function, because files that share a worker load this module one after another. */
const ORIGINAL = Symbol.for("mooring.test.query");
const query: (this: unknown, ...given: readonly unknown[]) => unknown = Reflect.get(pg.Client.prototype, ORIGINAL) ?? pg.Client.prototype.query;
Reflect.set(pg.Client.prototype, ORIGINAL, query);
pg.Client.prototype.query = function (this: unknown, ...given: readonly unknown[]): unknown {
  const [asked] = given as readonly [pg.QueryConfig | string | undefined]; // as: pg takes nothing else first
  if (typeof asked === "object" && typeof asked.text === "string" && asked.text.includes(INSERT_EVENTS)) note(asked.values ?? []);
  return query.call(this, ...given);
} as typeof pg.Client.prototype.query;
