// Which tables PostgreSQL watches for the audit log: all but these. A table that a migration adds is watched from the start that applies it.
import type pg from "pg";

/** Only while a transaction asks for its record does a watched table cost more than one look at a setting. */
export const NOT_WATCHED: Readonly<Record<string, string>> = {
  audit_logs: "the log itself",
  audit_chains: "the ends of the log's chains",
  _prisma_migrations: "Prisma's own",
  outbox_events: "an event tells of a change that is recorded already",
  outbox_pending: "which events the relay has still to dispatch",
  outbox_dispatches: "which events the relay has dispatched",
  idempotency_keys: "the answer of the call that is recorded",
  used_signatures: "proves a call, and changes nothing of the tenant's",
  mails: "tells people of what is recorded already",
  sign_in_links: "lets one person in within minutes, and the session that it opens is recorded",
  stream_tickets: "lives for a minute and opens one stream",
  device_presence: "written by heartbeats and sessions",
  commands: "each command has its own history, with the actor of each step",
  command_queue: "the state of open commands, with the same history",
  device_metrics: "a history of reports, which a job adds up",
  tenant_metrics: "a history of reports and events, which a job adds up",
  app_metrics: "a history of reports",
  overview_points: "what a job has counted",
  metric_progress: "how far that job has come",
  installation: "what the nodes check at their start",
  job_runs: "how the jobs fare",
  traces: "what programs report of themselves",
  trace_spans: "what programs report of themselves",
  trace_operations: "what programs report of themselves",
  trace_usage: "counts what programs report",
  security_events: "what callers did; a change of theirs is recorded by itself",
  blocked_entities_version: "a number by which nodes learn of changes that are recorded",
  webhook_endpoints: "which node delivers, and how the receiver fares",
  webhook_deliveries: "the log of what was sent, with each attempt",
  webhook_hours: "counts of those attempts",
  bulk_items: "each item says what became of it",
  data_export_chunks: "the file of an export, whose record is watched",
  bulk_parts: "which parts of the items have come",
  untold_outcomes: "work that a job still has to do",
  alert_states: "what a job has found",
  import_parts: "the file of an import, whose record is watched",
  import_lines: "each line says what became of it",
  cost_ledgers: "how far a job has come",
  cost_days: "what a job has added up",
  cost_app_days: "what a job has added up",
  cost_months: "what a job has added up",
  cost_app_months: "what a job has added up",
  cost_totals: "what a job has added up",
  cost_budget_notices: "of what people have been told, by an event",
  alert_tenants: "who has got the first rules",
  alert_notifications: "tells people of what alerts say already",
  alert_signals: "events, which are recorded already",
};

const MARKER = "/* mooring migration audit */";

/** A database whose migrations do not know the log, as a test's may be, has nothing to attach. */
export const watchTables = async (
  client: Pick<pg.Pool, "query">,
  untilLocked: <T>(marker: string, attempt: () => Promise<T>) => Promise<T>,
  lockTimeoutMs: number,
): Promise<void> => {
  const { rows } = await client.query<{ known: boolean }>("select to_regproc('audit_attach') is not null as known");
  if (rows[0]?.known !== true) return;
  // Each statement is one transaction, so each table's lock lasts for a moment.
  const text = `${MARKER} with limits as materialized (select set_config('lock_timeout', $2, true)) select audit_attach($1) as name from limits`;
  const attach = () => client.query<{ name: string | null }>(text, [Object.keys(NOT_WATCHED), String(lockTimeoutMs)]);
  while ((await untilLocked(MARKER, attach)).rows[0]?.name !== null);
};
