// The contract: every operation, event and error of Mooring. Server, agent and clients import it from here.
import type { TRPCMutationProcedure, TRPCQueryProcedure, TRPCSubscriptionProcedure } from "@trpc/server";
import type { z } from "zod";
import type { ErrorFacts, RouterOf, Stream } from "./client/router.ts";
import { account } from "./groups/access/account.ts";
import { apiKeys } from "./groups/access/api-keys.ts";
import { invites } from "./groups/access/invites.ts";
import { roles } from "./groups/access/roles.ts";
import { sessions } from "./groups/access/sessions.ts";
import { tenants } from "./groups/access/tenants.ts";
import { agent } from "./groups/agent.ts";
import { alerts } from "./groups/alerts.ts";
import { apps } from "./groups/apps.ts";
import { audit } from "./groups/audit.ts";
import { backupDestinations } from "./groups/backup-destinations.ts";
import { backupPolicies } from "./groups/backup-policies.ts";
import { backups } from "./groups/backups.ts";
import { batch } from "./groups/batch.ts";
import { billing } from "./groups/billing.ts";
import { bulkOperations } from "./groups/bulk-operations.ts";
import { commands } from "./groups/commands.ts";
import { costs } from "./groups/costs.ts";
import { dataExports } from "./groups/data-exports.ts";
import { deployments } from "./groups/deployments.ts";
import { devices } from "./groups/devices.ts";
import { domains } from "./groups/domains.ts";
import { fleets } from "./groups/fleets.ts";
import { general } from "./groups/general.ts";
import { health } from "./groups/health.ts";
import { imports } from "./groups/imports.ts";
import { admin } from "./groups/installation/admin.ts";
import { announcements } from "./groups/installation/announcements.ts";
import { impersonations } from "./groups/installation/impersonations.ts";
import { live } from "./groups/live.ts";
import { meshRoutes } from "./groups/mesh-routes.ts";
import { pairing } from "./groups/pairing.ts";
import { rollouts } from "./groups/rollouts.ts";
import { security } from "./groups/security.ts";
import { attention } from "./groups/start/attention.ts";
import { overview } from "./groups/start/overview.ts";
import { traces } from "./groups/traces.ts";
import { tunnels } from "./groups/tunnels.ts";
import { views } from "./groups/views.ts";
import { volumes } from "./groups/volumes.ts";
import { webhooks } from "./groups/webhooks.ts";
import type { ErrorCode } from "./kit/errors.ts";
import type { Group, Operation } from "./kit/operation.ts";

export const contract = {
  health,
  pairing,
  devices,
  commands,
  agent,
  apps,
  deployments,
  backups,
  backupDestinations,
  backupPolicies,
  volumes,
  tenants,
  roles,
  apiKeys,
  billing,
  general,
  live,
  admin,
  audit,
  invites,
  account,
  security,
  sessions,
  fleets,
  traces,
  alerts,
  webhooks,
  views,
  domains,
  tunnels,
  meshRoutes,
  bulkOperations,
  batch,
  dataExports,
  rollouts,
  announcements,
  impersonations,
  costs,
  imports,
  attention,
  overview,
} as const satisfies Record<string, Group>;
export type Contract = typeof contract;

type ProcedureOf<Op> =
  Op extends Operation<infer K, infer I, infer O>
    ? K extends "query"
      ? TRPCQueryProcedure<{ input: z.input<I>; output: z.output<O>; meta: unknown }>
      : K extends "mutation"
        ? TRPCMutationProcedure<{ input: z.input<I>; output: z.output<O>; meta: unknown }>
        : TRPCSubscriptionProcedure<{ input: z.input<I>; output: Stream<z.output<O>>; meta: unknown }>
    : never;
/** tRPC has no form for a text in pieces. */
type InPieces<Op> = Op extends { readonly output: infer O extends z.ZodType } ? Extract<z.output<O>, AsyncIterable<unknown>> : never;
type RecordOf<C> = {
  [G in keyof C]: C[G] extends { operations: infer O } ? { [N in keyof O as [InPieces<O[N]>] extends [never] ? N : never]: ProcedureOf<O[N]> } : never;
};

export type AppErrorData = ErrorFacts<ErrorCode>;

/** Use it as `createTRPCClient<AppRouter>()`. It derives from the contract alone, so a client never imports the server. */
export type AppRouter = RouterOf<RecordOf<Contract>, ErrorCode>;

export * from "./channel/agent.ts";
export * from "./channel/carrier.ts";
export * from "./channel/close.ts";
export * from "./groups/access/account.ts";
export { ApiKey } from "./groups/access/api-keys.ts";
export * from "./groups/access/invites.ts";
export { Member, PermissionRecord, RoleRecord } from "./groups/access/roles.ts";
export { UserSession } from "./groups/access/sessions.ts";
export * from "./groups/access/tenants.ts";
export * from "./groups/audit.ts";
export { BackupDestination } from "./groups/backup-destinations.ts";
export * from "./groups/batch.ts";
export * from "./groups/billing.ts";
export { BULK_ID_FIELDS } from "./groups/bulk-operations.ts";
export { DataExport, type DataExportStatus, EXPORT_SCOPES, ExportScope } from "./groups/data-exports.ts";
export * from "./groups/devices.ts";
export * from "./groups/domains.ts";
export * from "./groups/fleets.ts";
export * from "./groups/health.ts";
export { Import, ImportAction, ImportLine, MAX_UPLOAD_BYTES, MAX_UPLOAD_PART_BYTES } from "./groups/imports.ts";
export { AdminTenant } from "./groups/installation/admin.ts";
export { Announcement, ManagedAnnouncement } from "./groups/installation/announcements.ts";
export { Impersonation } from "./groups/installation/impersonations.ts";
export * from "./groups/live.ts";
export * from "./groups/security.ts";
export * from "./groups/traces.ts";
export * from "./groups/views.ts";
export { FoundVolume, MAX_VOLUMES, VolumeDiscoveryResult, VolumeInfo } from "./groups/volumes.ts";
export * from "./kit/app-fit.ts";
export * from "./kit/command-type.ts";
export * from "./kit/device-selector.ts";
export * from "./kit/errors.ts";
export * from "./kit/event.ts";
export * from "./kit/flags.ts";
export * from "./kit/ids.ts";
export * from "./kit/limits.ts";
export { newestLines } from "./kit/log-text.ts";
export { createMasker, type Masker } from "./kit/masking.ts";
export * from "./kit/operation.ts";
export * from "./kit/page.ts";
export * from "./kit/permissions.ts";
export * from "./kit/signing.ts";
export * from "./kit/signing-v2.ts";
export { readSeconds } from "./kit/waits.ts";
export { ALERT_METRIC_WORDS, capitalized, inWords, PLAN_RESOURCES, type PlanResource } from "./kit/words.ts";
export * from "./records/actor.ts";
export { AdminDevice, AdminUser, BackgroundJob, FeatureFlag, InstallationStats, STUCK_KINDS, StuckItem } from "./records/admin.ts";
export * from "./records/alerts.ts";
export * from "./records/apps/app.ts";
export { MAX_SECRETS } from "./records/apps/app-input.ts";
export * from "./records/apps/app-log.ts";
export * from "./records/apps/app-picture.ts";
export { AppConfig, AppSlug, AppSpec, AppStage, ConfigValue, DesiredApp, ReportedApp, VariableName } from "./records/apps/app-spec.ts";
export * from "./records/apps/app-template.ts";
export * from "./records/apps/config-schema.ts";
export * from "./records/apps/deployment.ts";
export * from "./records/attention.ts";
export * from "./records/backups/backup.ts";
export { BackupPolicy, BackupRun, PolicyPreview, PolicyTarget, Retention, RunStatus } from "./records/backups/backup-policy.ts";
export { DESTINATION_KINDS, DestinationKind, REPOSITORY_RIGHTS, RepositoryAccess, RepositoryRight } from "./records/backups/repository-access.ts";
export * from "./records/bulk.ts";
export * from "./records/command.ts";
export * from "./records/command-ack.ts";
export { CommandResult, CommandResults } from "./records/command-order.ts";
export * from "./records/costs.ts";
export * from "./records/dashboard.ts";
export { AgentEvent } from "./records/devices/agent-event.ts";
export * from "./records/devices/agent-release.ts";
export * from "./records/devices/connect-plan.ts";
export type { InstallCommands } from "./records/devices/enrollment.ts";
export * from "./records/devices/enrollment.ts";
export { EnrollmentToken, PAIRING_STATUSES, PairingActivateResponse, PairingRequest, WaitingMachine } from "./records/devices/pairing.ts";
export * from "./records/domain.ts";
export * from "./records/load-test.ts";
export * from "./records/mesh-route.ts";
export * from "./records/metrics.ts";
export * from "./records/overview.ts";
export * from "./records/rollout.ts";
export * from "./records/tunnel.ts";
export * from "./records/update-policy.ts";
export * from "./records/webhook.ts";
