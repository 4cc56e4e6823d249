// Declared statements are prepared under their names; text that nobody declared is sent as it is.

import { expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { statement } from "../../../server/core/statements.ts";
import { openDb } from "../../../server/platform/database/db.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { createTestDatabase } from "../../kit/stores/database.ts";

const ADD = statement<{ readonly sum: number }>("test.add", "select $1::int + 1 as sum");

test.each([
  ["PostgreSQL prepares a declared statement once and nothing else", true, ["test.add"]],
  ["behind a pooler that knows no prepared statements none is prepared", false, []],
] as const)("%s", async (_title, namedStatements, prepared) => {
  const db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 1, log: silentLog, namedStatements });
  try {
    for (let n = 0; n < 3; n += 1) expect(await db.query(ADD, [n])).toEqual([{ sum: n + 1 }]);
    expect(await db.query<{ name: string }>("select name from pg_prepared_statements")).toEqual(prepared.map((name) => ({ name })));
  } finally {
    await db.close();
  }
});
