// What the gateway says, when it starts, of a database that can lose confirmed commits.
import { expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { openDb } from "../../../server/platform/database/db.ts";
import { warnOfUnsafeSettings } from "../../../server/platform/database/durability.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { createTestDatabase, withClient } from "../../kit/stores/database.ts";

const warned = async (url: string): Promise<readonly unknown[]> => {
  const said: unknown[] = [];
  const db = await openDb({ clock: systemClock, url, poolSize: 1, log: silentLog });
  await warnOfUnsafeSettings(db, { ...silentLog, warn: (fields) => void said.push(fields) });
  await db.close();
  return said;
};

test("each setting that lets a crash take back what was confirmed is named", async () => {
  const url = await createTestDatabase();
  // The server of the tests forgets in a crash, and is the faster for it.
  expect(await warned(url)).toEqual([{ off: ["fsync", "full_page_writes", "synchronous_commit"] }]);
  await withClient(url, (client) => client.query(`alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = on`));
  expect(await warned(url)).toEqual([{ off: ["fsync", "full_page_writes"] }]);
});
