// Names of those who did something, for one page of records in one read.
import type { Actor } from "../../../protocol/index.ts";
import type { SqlTx } from "../events.ts";
import { type SystemScope, userIdOf } from "../scope.ts";
import { statement } from "../statements.ts";

const FIND_NAMES = statement<{ readonly id: string; readonly name: string | null }>(
  "actors.findNames",
  `select 'user:' || m.user_id as id, coalesce(u.name, m.email) as name from memberships m left join users u on u.user_id = m.user_id
    where m.tenant_id = $1 and m.user_id = any($2::text[])
   union all select k.key_id, k.name from api_keys k where k.tenant_id = $1 and k.key_id = any($3::text[])
   union all select d.agent_id, coalesce(d.name, d.hostname) from devices d where d.tenant_id = $1 and d.agent_id = any($3::text[])
   union all select d.device_id, coalesce(d.name, d.hostname) from devices d where d.tenant_id = $1 and d.device_id = any($3::text[])`,
);

const kindOf = (id: string): Actor["kind"] => {
  if (userIdOf(id) !== null) return "user";
  if (id.startsWith("key_")) return "apiKey";
  // The steps of a command name the agent by its device.
  return /^(agt|dev)_/.test(id) ? "agent" : "system";
};

/** Takes ids as `actorOf` writes them, and returns the function that names each. */
export const findActors = async (sql: SqlTx, { tenantId }: SystemScope, ids: readonly string[]): Promise<(id: string) => Actor> => {
  const named = [...new Set(ids)].filter((id) => kindOf(id) !== "system");
  const users = named.flatMap((id) => userIdOf(id) ?? []);
  const rows = named.length === 0 ? [] : await sql.query(FIND_NAMES, [tenantId, users, named]);
  const names = new Map(rows.map(({ id, name }) => [id, name]));
  return (id) => ({ kind: kindOf(id), id, name: names.get(id) ?? null });
};
