// What apps use, by their agents' reports: the newest figures stand in the app's row, those of the last day in a ring of slots.
import type { ReportedApp } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

const MINUTE_MS = 60_000;
export const SLOT_SECONDS = 300;
const SLOT_MS = SLOT_SECONDS * 1_000;
const SLOTS = 86_400 / SLOT_SECONDS;

const COLUMNS = ["cpu", "memory", "response"] as const;
const added = (column: string): string =>
  [
    `${column}_samples = case when m.at = excluded.at then m.${column}_samples else 0 end + excluded.${column}_samples`,
    `${column}_sum = case when m.at = excluded.at then m.${column}_sum else 0 end + excluded.${column}_sum`,
    `${column}_max = greatest(case when m.at = excluded.at then m.${column}_max end, excluded.${column}_max)`,
  ].join(", ");

const shown = (figures: string): string => `(a.reported - 'responseMs') || ${figures}`;

// Apps are locked in the order of their ids, as everywhere, and only those whose figures or version changed.
const KEEP = statement(
  "apps.keepFigures",
  `with said as (
     select * from rows from (unnest($3::text[], $4::float8[], $5::float8[], $6::float8[]), jsonb_array_elements($7::jsonb)) as s(app_id, cpu, memory, response, figures)),
   known as (
     select s.*, a.reported <> ${shown("s.figures")} or a.reported_version < $11 as changed from said s
       join apps a on a.tenant_id = $1 and a.app_id = s.app_id and a.removed_at is null and a.reported is not null),
   locked as (
     select a.app_id, k.figures from known k join apps a on a.tenant_id = $1 and a.app_id = k.app_id where k.changed order by a.app_id for no key update of a),
   updated as (
     update apps a set reported = ${shown("l.figures")}, reported_version = greatest(a.reported_version, $11),
       reported_at = case when a.reported <> ${shown("l.figures")} then $2 else a.reported_at end
     from locked l where a.tenant_id = $1 and a.app_id = l.app_id)
   insert into app_metrics as m (tenant_id, app_id, slot, at, minute, samples, ${COLUMNS.map((column) => `${column}_samples, ${column}_sum, ${column}_max`).join(", ")})
   select $1, app_id, $8, $9, $10, 1, ${COLUMNS.map((column) => `num_nonnulls(${column}), coalesce(${column}, 0), coalesce(${column}, 0)`).join(", ")} from known
    where num_nonnulls(${COLUMNS.join(", ")}) > 0 order by app_id
   on conflict (tenant_id, app_id, slot) do update set at = excluded.at, minute = excluded.minute,
     samples = case when m.at = excluded.at then m.samples else 0 end + 1, ${COLUMNS.map(added).join(", ")}
   where m.minute < excluded.minute`,
);

/** Agents of many cores exceed 100; nothing exceeds this. */
const MAX_CPU_PERCENT = 1_000_000;

/** What an agent has reported of apps that are otherwise as the gateway knows them. */
export interface SaidFigures {
  readonly version: number;
  readonly apps: readonly ReportedApp[];
}

/** One statement, however many apps the device has. */
export const keepFigures = async (sql: SqlTx, { tenantId }: SystemScope, { version, apps: said }: SaidFigures, at: Date): Promise<void> => {
  if (said.length === 0) return;
  const slotAt = Math.floor(at.getTime() / SLOT_MS);
  const cpuOf = ({ cpuPercent }: ReportedApp): number | null => (cpuPercent === null ? null : Math.min(cpuPercent, MAX_CPU_PERCENT));
  await sql.query(KEEP, [
    tenantId,
    at,
    said.map(({ appId }) => appId),
    said.map(cpuOf),
    said.map(({ memoryBytes }) => memoryBytes),
    said.map(({ responseMs }) => responseMs ?? null),
    JSON.stringify(said.map(({ cpuPercent, memoryBytes, responseMs }) => ({ cpuPercent, memoryBytes, responseMs }))),
    slotAt % SLOTS,
    new Date(slotAt * SLOT_MS),
    new Date(Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS),
    version,
  ]);
};

/** The slots of an app that are not older. */
export const readFigures = (db: Clients, scope: SystemScope, appId: string, from: Date) =>
  db.for(scope).appMetric.findMany({ where: { appId, at: { gte: from } } });
