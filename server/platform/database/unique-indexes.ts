// The unique indexes of the schema: the declared error that a caller gets for a second row, or why no caller can cause one. A transaction that meets a
// second row runs again (db.ts), and mostly its own look finds the row then; this table answers what still fails.
import type { ErrorCode } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { violatedIndex } from "./db-errors.ts";

export type IndexMeaning =
  | {
      readonly error: ErrorCode;
      /** Fields of the call's input that the error's details repeat. */
      readonly fields: readonly string[];
    }
  /** The second row is the first: every writer succeeds, or is told to wait for the first. */
  | { readonly merges: string }
  | { readonly never: string };

const answers = (error: ErrorCode, ...fields: readonly string[]): IndexMeaning => ({ error, fields });
const merges = (how: string): IndexMeaning => ({ merges: how });
const never = (reason: string): IndexMeaning => ({ never: reason });

const GENERATED = never("the gateway generates the value, at random");
const COPY = never("repeats the primary key beside its tenant, as the target of foreign keys");
const MERGED = never("every insert has ON CONFLICT");
const NUMBERED = never("the gateway counts the numbers under a lock");
const WITH_PARENT = never("inserted in the transaction of the row that its key names");
const UPSERT = "changes the row that is there";

export const UNIQUE_INDEXES: Readonly<Record<string, IndexMeaning>> = {
  blocked_entities_tenant_id_entity_type_entity_value_key: answers("ENTITY_ALREADY_BLOCKED", "entityType", "entityValue"),
  mesh_routes_tenant_id_listen_port_key: answers("MESH_ROUTE_CONFLICT", "listenPort"),
  mesh_routes_tenant_id_target_hash_key: answers("MESH_ROUTE_CONFLICT", "network"),
  tunnels_hostname_key: answers("TUNNEL_HOSTNAME_TAKEN", "hostname"),
  custom_domains_tenant_id_hostname_key: answers("DOMAIN_TAKEN", "hostname"),
  deployments_living_tenant_name_key: answers("DEPLOYMENT_ALREADY_EXISTS", "name"),
  devices_living_tenant_fingerprint_key: answers("DEVICE_ALREADY_PAIRED"),
  invites_pending_tenant_email_key: answers("INVITE_ALREADY_PENDING", "email"),
  load_tests_pkey: answers("LOAD_TEST_RUNNING"),
  memberships_tenant_id_user_id_key: answers("ALREADY_MEMBER"),
  roles_tenant_id_key_key: answers("ROLE_NAME_RESERVED", "name"),
  tenants_slug_key: answers("TENANT_SLUG_TAKEN", "slug"),

  commands_tenant_id_device_id_idempotency_key_key: merges("answers with the first command"),
  desired_versions_pkey: merges(UPSERT),
  feature_flag_overrides_pkey: merges(UPSERT),
  feature_flags_pkey: merges(UPSERT),
  idempotency_keys_pkey: merges("answers as the first call did, or IDEMPOTENCY_IN_PROGRESS"),
  security_rules_pkey: merges(UPSERT),
  slug_reservations_pkey: merges(UPSERT),
  tenant_settings_pkey: merges(UPSERT),
  user_profiles_pkey: merges(UPSERT),
  users_pkey: merges(UPSERT),

  custom_domains_pkey: GENERATED,
  mesh_routes_pkey: GENERATED,
  mesh_routes_tenant_id_route_id_key: COPY,
  mesh_routers_pkey: WITH_PARENT,
  tunnels_pkey: GENERATED,
  tunnels_token_hash_key: GENERATED,
  tunnels_port_key: NUMBERED,
  tunnel_carriers_pkey: GENERATED,
  alert_channels_pkey: GENERATED,
  alert_notifications_pkey: GENERATED,
  alert_rules_pkey: GENERATED,
  alert_silences_pkey: GENERATED,
  alerts_pkey: GENERATED,
  api_keys_hash_key: GENERATED,
  announcement_dismissals_pkey: MERGED,
  announcements_pkey: GENERATED,
  api_keys_pkey: GENERATED,
  impersonations_pkey: GENERATED,
  impersonations_hash_key: GENERATED,
  impersonations_tenant_id_impersonation_id_key: COPY,
  data_exports_pkey: GENERATED,
  data_exports_tenant_id_export_id_key: COPY,
  data_export_chunks_pkey: NUMBERED,
  api_keys_previous_hash_key: GENERATED,
  acme_accounts_pkey: MERGED,
  app_metrics_pkey: MERGED,
  app_snapshots_pkey: GENERATED,
  apps_pkey: GENERATED,
  backup_destinations_default_key: never("who makes a destination, or another the default, holds a lock"),
  backup_destinations_pkey: GENERATED,
  backup_destinations_tenant_id_destination_id_key: COPY,
  backup_policies_pkey: GENERATED,
  backup_policies_tenant_id_policy_id_key: COPY,
  backup_repositories_pkey: GENERATED,
  backup_repositories_tenant_id_destination_id_device_id_key: MERGED,
  backup_repositories_tenant_id_repository_id_key: COPY,
  backup_run_items_pkey: WITH_PARENT,
  backup_runs_pkey: GENERATED,
  backup_runs_tenant_id_policy_id_scheduled_for_key: MERGED,
  backup_runs_tenant_id_run_id_key: COPY,
  backups_pkey: never("the gateway generates the value, or looks for the agent's under a lock"),
  restores_pkey: GENERATED,
  restores_tenant_id_restore_id_key: COPY,
  volume_scans_pkey: MERGED,
  volumes_pkey: never("who writes the volumes of a device holds a lock"),
  audit_logs_pkey: GENERATED,
  blocked_entities_pkey: GENERATED,
  bulk_operations_pkey: GENERATED,
  commands_pkey: GENERATED,
  deployments_pkey: GENERATED,
  devices_agent_id_key: GENERATED,
  devices_pkey: GENERATED,
  enrollment_tokens_hash_key: GENERATED,
  enrollment_tokens_pkey: GENERATED,
  fleets_pkey: GENERATED,
  rollout_devices_live_key: never("a step that meets another rollout's device runs again, and skips it"),
  rollout_devices_open_key: never("a step orders only devices that no other rollout has open, and runs again if another was faster"),
  rollout_devices_pkey: never("a step freezes each device once, under the lock of the rollout's work"),
  rollouts_pkey: GENERATED,
  rollouts_tenant_id_rollout_id_key: COPY,
  update_policies_pkey: GENERATED,
  update_policies_tenant_id_update_policy_id_key: COPY,
  gateway_nodes_pkey: GENERATED,
  installation_pkey: MERGED,
  invites_hash_key: GENERATED,
  invites_pkey: GENERATED,
  mails_pkey: GENERATED,
  memberships_pkey: GENERATED,
  outbox_events_pkey: GENERATED,
  pairings_pkey: GENERATED,
  roles_pkey: GENERATED,
  saved_views_pkey: GENERATED,
  security_alerts_pkey: GENERATED,
  security_events_pkey: GENERATED,
  sessions_hash_key: GENERATED,
  sessions_pkey: GENERATED,
  sign_in_links_pkey: GENERATED,
  stream_tickets_pkey: GENERATED,
  tenants_durable_object_id_key: GENERATED,
  tenants_pkey: GENERATED,
  webhook_deliveries_pkey: GENERATED,
  webhooks_pkey: GENERATED,
  alert_channels_tenant_id_channel_id_key: COPY,
  alerts_tenant_id_alert_id_key: COPY,
  apps_tenant_id_app_id_key: COPY,
  bulk_operations_tenant_id_operation_id_key: COPY,
  deployments_tenant_id_deployment_id_key: COPY,
  devices_tenant_id_device_id_key: COPY,
  roles_tenant_id_role_id_key: COPY,
  webhook_endpoints_tenant_id_webhook_id_key: COPY,
  webhooks_tenant_id_webhook_id_key: COPY,
  alert_signals_pkey: MERGED,
  alert_states_pkey: MERGED,
  alert_targets_pkey: MERGED,
  alert_tenants_pkey: MERGED,
  imports_pkey: GENERATED,
  imports_tenant_id_import_id_key: COPY,
  import_lines_pkey: WITH_PARENT,
  import_parts_pkey: NUMBERED,
  cost_rates_pkey: NUMBERED,
  cost_rates_tenant_id_valid_from_key: never("set under a lock, which deletes the row of the same day first"),
  cost_ledgers_pkey: MERGED,
  cost_days_pkey: MERGED,
  cost_app_days_pkey: MERGED,
  cost_months_pkey: MERGED,
  cost_app_months_pkey: MERGED,
  cost_totals_pkey: MERGED,
  cost_budgets_pkey: GENERATED,
  cost_budgets_tenant_id_budget_id_key: COPY,
  cost_budget_notices_pkey: MERGED,
  audit_chains_pkey: MERGED,
  blocked_entities_version_pkey: MERGED,
  bulk_items_tenant_id_operation_id_target_id_key: never("the operation is locked while targets come, and an insert leaves out those that it has"),
  device_metrics_pkey: MERGED,
  invoices_pkey: MERGED,
  job_runs_pkey: MERGED,
  many_turns_pkey: MERGED,
  many_work_pkey: MERGED,
  metric_progress_pkey: MERGED,
  pairings_code_hash_key: MERGED,
  provider_events_pkey: MERGED,
  security_events_tenant_id_type_entity_type_entity_id_minute_key: MERGED,
  subscriptions_pkey: MERGED,
  tenant_metrics_pkey: MERGED,
  trace_operations_pkey: MERGED,
  trace_spans_pkey: MERGED,
  trace_usage_pkey: MERGED,
  traces_pkey: MERGED,
  untold_outcomes_pkey: MERGED,
  used_signatures_pkey: MERGED,
  webhook_deliveries_tenant_id_webhook_id_event_id_key: MERGED,
  webhook_hours_pkey: MERGED,
  audit_logs_tenant_id_sequence_key: NUMBERED,
  bulk_items_pkey: NUMBERED,
  bulk_parts_pkey: never("the operation is locked while its parts come, and a part that came before is found"),
  command_queue_pkey: NUMBERED,
  commands_device_id_seq_key: NUMBERED,
  deployment_revisions_pkey: NUMBERED,
  outbox_dispatches_pkey: NUMBERED,
  outbox_pending_pkey: NUMBERED,
  device_presence_pkey: WITH_PARENT,
  enrollments_pkey: WITH_PARENT,
  webhook_endpoints_pkey: WITH_PARENT,
  custom_domains_verified_hostname_key: never("whoever proves a name second looks again, finds its owner and loses the claim"),
  _prisma_migrations_pkey: never("only a migration writes it"),
  enrollments_tenant_id_device_id_key: never("the pairing frees the device's row in the same transaction, which holds the device"),
};

/** The declared error for a second row under a unique index; null for every other failure. */
export const duplicateError = (error: unknown, input: unknown): AppError | null => {
  const index = violatedIndex(error);
  const meaning = index !== null && Object.hasOwn(UNIQUE_INDEXES, index) ? UNIQUE_INDEXES[index] : undefined;
  if (meaning === undefined || !("error" in meaning)) return null;
  const given = (input ?? {}) as Readonly<Record<string, unknown>>; // as: a parsed input
  const details = Object.fromEntries(meaning.fields.filter((field) => given[field] !== undefined).map((field) => [field, given[field]]));
  return new AppError(meaning.error, { details, cause: error });
};
