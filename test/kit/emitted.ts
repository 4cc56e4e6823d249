// Notes which events the code under test writes into the outbox, so that a whole run can say which one no test has caused.
import { appendFileSync } from "node:fs";
import pg from "pg";
import { inject } from "vitest";

// Rows that a test writes by itself prove nothing, so this listens to the outbox's own statement.
const INSERT = "insert into outbox_events (event_id, tenant_id, type, subject_id, data, request_id, traceparent)";
const TYPES = 2;

const file = inject("emittedFile");
const noted = new Set<string>();
const note = (types: unknown): void => {
  for (const type of String(types).slice(1, -1).split(",")) {
    if (noted.has(type)) continue;
    noted.add(type);
    appendFileSync(file, `${type}\n`);
  }
};

const query = pg.Client.prototype.query as (this: unknown, ...given: readonly unknown[]) => unknown;
pg.Client.prototype.query = function (this: unknown, ...given: readonly unknown[]): unknown {
  const [asked] = given as readonly [pg.QueryConfig | string | undefined]; // as: pg takes nothing else first
  if (typeof asked === "object" && typeof asked.text === "string" && asked.text.startsWith(INSERT)) note(asked.values?.[TYPES]);
  return query.call(this, ...given);
} as typeof pg.Client.prototype.query;
