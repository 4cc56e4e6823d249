// How many of a tenant's events have been dispatched: the number by which clients order what they read and the events of their stream.
import type { SqlTx } from "../events.ts";
import type { SystemScope } from "../scope.ts";
import { statement } from "../statements.ts";

const FIND = statement<{ readonly version: number }>(
  "events.findVersion",
  "select coalesce(max(last_sequence), 0)::int8 as version from outbox_dispatches where tenant_id = $1",
);

/** Read it before what it shall describe: that then contains the effects of every event up to it. */
export const findEventVersion = async (sql: SqlTx, { tenantId }: SystemScope): Promise<number> => (await sql.query(FIND, [tenantId]))[0]?.version ?? 0;
