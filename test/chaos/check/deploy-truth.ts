// What the rig's database says of deployments: records, events and open commands.
import type { AppStatus, DeploymentStatus, ReportedApp } from "../../../protocol/index.ts";
import type { SqlConnection } from "../rig/sql.ts";
import type { AppFact, DeploymentEventFact, DeploymentFact } from "./deploy-checker.ts";

const DEPLOYMENTS = `
  select d.deployment_id as id, d.status, d.revision, d.failure->>'reason' as reason, d.failure->>'message' as message, a.app_id, a.device_id, a.status as app_status, a.desired_state,
         a.revision as app_revision, a.reported,
         coalesce(q.open, 0) as open
    from deployments d left join apps a on a.tenant_id = d.tenant_id and a.deployment_id = d.deployment_id
    left join (select lane, count(*)::int as open from command_queue group by lane) q on q.lane = 'app:' || a.app_id
   where not d.is_default order by d.deployment_id`;
const EVENTS = `
  select event_id as id, subject_id, substr(type, 12) as type, (data->>'revision')::int as revision, (data->>'currentRevision')::int as current,
         data->>'status' as status, data->>'previous' as previous, coalesce(data->>'reason', data->'failure'->>'reason') is not null as failed
    from outbox_events where type like 'deployment.%' order by position`;

interface DeploymentRow {
  readonly id: string;
  readonly status: DeploymentStatus;
  readonly revision: number;
  readonly reason: string | null;
  readonly message: string | null;
  readonly app_id: string | null;
  readonly device_id: string;
  readonly app_status: AppStatus;
  readonly desired_state: AppFact["desiredState"];
  readonly app_revision: number;
  readonly reported: ReportedApp | null;
  readonly open: number;
}
interface EventRow {
  readonly id: string;
  readonly subject_id: string;
  readonly type: string;
  readonly revision: number;
  readonly current: number | null;
  readonly status: DeploymentStatus;
  readonly previous: DeploymentStatus | null;
  readonly failed: boolean;
}

const appOf = (row: DeploymentRow): AppFact | null =>
  row.app_id === null
    ? null
    : {
        appId: row.app_id,
        deviceId: row.device_id,
        status: row.app_status,
        desiredState: row.desired_state,
        revision: row.app_revision,
        reported: row.reported,
        open: row.open,
      };

export const readDeployments = async (sql: SqlConnection): Promise<readonly DeploymentFact[]> => {
  const events = new Map<string, DeploymentEventFact[]>();
  for (const { subject_id: subject, current, ...event } of await sql.query<EventRow & Record<string, unknown>>(EVENTS)) {
    const list = events.get(subject) ?? [];
    list.push({ ...event, currentRevision: current });
    events.set(subject, list);
  }
  const rows = await sql.query<DeploymentRow & Record<string, unknown>>(DEPLOYMENTS);
  return rows.map((row) => ({
    deploymentId: row.id,
    status: row.status,
    revision: row.revision,
    reason: row.reason,
    message: row.message,
    app: appOf(row),
    events: events.get(row.id) ?? [],
  }));
};

/** All events of deployments and apps, in the order in which they were written. */
export const readEvents = (sql: SqlConnection): Promise<readonly { readonly id: string; readonly subjectId: string }[]> =>
  sql.query(`select event_id as id, subject_id as "subjectId" from outbox_events where type like 'deployment.%' or type like 'app.%' order by position`);

const RESTING = `select count(*)::int as open from deployments where status not in ('active', 'failed', 'stopped', 'cancelled', 'deleted')`;
/** How many deployments are still changing. */
export const countChanging = async (sql: SqlConnection): Promise<number> => (await sql.query<{ open: number }>(RESTING))[0]?.open ?? 0;

/** Of the whole database so far. */
export const readCounters = async (sql: SqlConnection): Promise<{ readonly transactions: number; readonly deadlocks: number }> => {
  const [row] = await sql.query<{ transactions: string; deadlocks: string }>(
    "select xact_commit as transactions, deadlocks from pg_stat_database where datname = current_database()",
  );
  return { transactions: Number(row?.transactions ?? 0), deadlocks: Number(row?.deadlocks ?? 0) };
};
