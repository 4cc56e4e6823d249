// Names of those who did something, for one page of records in one read.
import { ACTOR_FIELDS, type Actor, type Page } from "../../../protocol/index.ts";
import type { SqlTx } from "../events.ts";
import { actorOfUser, adminIdOf, type SystemScope, userIdOf } from "../scope.ts";
import { statement } from "../statements.ts";

const FIND_NAMES = statement<{ readonly id: string; readonly name: string | null; readonly deleted: boolean }>(
  "actors.findNames",
  `select 'user:' || m.user_id as id, coalesce(u.name, m.email) as name, false as deleted from memberships m left join users u on u.user_id = m.user_id
    where m.tenant_id = $1 and m.user_id = any($2::text[])
   union all select k.key_id, k.name, k.revoked_at is not null from api_keys k where k.tenant_id = $1 and k.key_id = any($3::text[])
   union all select d.agent_id, coalesce(d.name, d.hostname), d.deleted_at is not null from devices d where d.tenant_id = $1 and d.agent_id = any($3::text[])
   union all select d.device_id, coalesce(d.name, d.hostname), d.deleted_at is not null from devices d where d.tenant_id = $1 and d.device_id = any($3::text[])`,
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
  const found = new Map(rows.map((row) => [row.id, row]));
  return (id) => {
    const kind = kindOf(id);
    const userId = userIdOf(id);
    const row = found.get(userId === null ? id : actorOfUser(userId));
    const name = row?.name ?? null;
    const adminId = adminIdOf(id);
    // Nobody reads such a name as the member's alone.
    const shown = adminId === null ? name : `${adminId} for ${name ?? userId}`;
    return { kind, id, name: shown, deleted: kind !== "system" && (row?.deleted ?? true) };
  };
};

type Fields = typeof ACTOR_FIELDS;
type ActorFor<V> = V extends string ? Actor : V;
export type WithActors<R> = R & { [K in keyof R & keyof Fields as Fields[K]]: ActorFor<R[K]> };

const ID_FIELDS = Object.entries(ACTOR_FIELDS);

/** Puts the actor beside each id of one, for all records in one read. `named` of the contract declares such a record. */
export const withActors = async <R extends object>(sql: SqlTx, scope: SystemScope, records: readonly R[]): Promise<WithActors<R>[]> => {
  const idsOf = (record: R): (readonly [string, unknown])[] => {
    const values = new Map<string, unknown>(Object.entries(record));
    return ID_FIELDS.flatMap(([id, actor]) => (values.has(id) ? [[actor, values.get(id)] as const] : []));
  };
  const ids = records.flatMap((record) => idsOf(record).flatMap(([, id]) => (typeof id === "string" ? [id] : [])));
  const actor = await findActors(sql, scope, ids);
  const actorsOf = (record: R) => Object.fromEntries(idsOf(record).map(([field, id]) => [field, typeof id === "string" ? actor(id) : id]));
  return records.map((record) => ({ ...record, ...actorsOf(record) }) as WithActors<R>); // as: entries lose their keys
};

export const withActor = async <R extends object>(sql: SqlTx, scope: SystemScope, record: R): Promise<WithActors<R>> => {
  const [named] = await withActors(sql, scope, [record]);
  if (named === undefined) throw new Error("a record got lost");
  return named;
};

export const pageWithActors = async <R extends object>(sql: SqlTx, scope: SystemScope, { items, ...page }: Page<R>): Promise<Page<WithActors<R>>> => ({
  items: await withActors(sql, scope, items),
  ...page,
});
