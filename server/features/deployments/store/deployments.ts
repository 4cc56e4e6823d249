// Rows of deployments and of their revisions.
import { Prisma } from "../../../../prisma/generated/client.ts";
import {
  type AppConfig,
  type AppFailure,
  type AppId,
  type AppSpec,
  type CommandId,
  Deployment,
  type DeploymentId,
  DeploymentRevision,
  type DeviceId,
  type Page,
  type TimelineStep,
} from "../../../../protocol/index.ts";
import type { Clients, Tx } from "../../../core/database.ts";
import { createListing, likeLiteral } from "../../../core/rows/listing.ts";
import { recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

type Narrowed = {
  readonly deploymentId: DeploymentId;
  readonly deviceId: DeviceId | null;
  readonly appId: AppId | null;
  readonly commandId: CommandId | null;
  readonly status: Deployment["status"];
  readonly configuration: AppConfig | null;
  readonly failure: AppFailure | null;
  readonly timeline: readonly TimelineStep[];
};
/** A row with the types of what its columns hold. */
export type DeploymentRow = Omit<Prisma.DeploymentModel, keyof Narrowed> & Narrowed;
const narrow = (row: Prisma.DeploymentModel): DeploymentRow => row as unknown as DeploymentRow; // as: only this feature writes the columns
export const toDeployment = (row: DeploymentRow): Deployment => recordOf(Deployment, row);

const existing = { deletedAt: null } as const;

export const findDeployment = async (db: Clients, scope: SystemScope, deploymentId: string): Promise<DeploymentRow | null> => {
  const row = await db.for(scope).deployment.findFirst({ where: { deploymentId, ...existing } });
  return row === null ? null : narrow(row);
};

/** The deployments among these that the caller sees, with their names. */
export const findNamedDeployments = async (db: Clients, scope: SystemScope, ids: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  const where = { deploymentId: { in: [...ids] }, ...existing };
  const rows = await db.for(scope).deployment.findMany({ where, select: { deploymentId: true, name: true } });
  return new Map(rows.map(({ deploymentId, name }) => [deploymentId, name]));
};

/** The command of the deployment's last change. */
export const commandOfDeployment = async (db: Clients, scope: SystemScope, deploymentId: string): Promise<string | null> =>
  (await db.for(scope).deployment.findFirst({ where: { deploymentId }, select: { commandId: true } }))?.commandId ?? null;

const LOCK = statement<{ readonly deployment_id: string }>(
  "deployments.lock",
  "select d.deployment_id from deployments d where d.tenant_id = $1 and d.deployment_id = any($2::text[]) order by d.deployment_id for no key update",
);
/** Until the transaction ends, nobody else changes the deployment. Lock its app first. */
export const lockDeployment = async (tx: Tx, scope: SystemScope, deploymentId: string): Promise<DeploymentRow | null> => {
  await tx.query(LOCK, [scope.tenantId, [deploymentId]]);
  return findDeployment(tx, scope, deploymentId);
};
/** The same for many; one that is gone is missing. */
export const lockDeployments = async (tx: Tx, scope: SystemScope, ids: readonly string[]): Promise<ReadonlyMap<string, DeploymentRow>> => {
  await tx.query(LOCK, [scope.tenantId, ids]);
  const rows = await tx.for(scope).deployment.findMany({ where: { deploymentId: { in: [...ids] }, ...existing } });
  return new Map(rows.map((row) => [row.deploymentId, narrow(row)]));
};

/** Another one with this name. */
export const hasName = async (db: Clients, { tenantId }: SystemScope, name: string): Promise<boolean> =>
  (await db.for({ tenantId }).deployment.count({ where: { name, ...existing } })) > 0;

export type NewDeployment = Omit<Prisma.DeploymentUncheckedCreateInput, "tenantId">;
export const insertDeployment = async (tx: Clients, scope: SystemScope, made: NewDeployment): Promise<DeploymentRow> =>
  narrow(await tx.for(scope).deployment.create({ data: made }));

/** `failure: null` clears the column. */
export type DeploymentChange = Readonly<Partial<Omit<DeploymentRow, "tenantId" | "deploymentId" | "version">>>;
const toColumns = ({ failure, ...rest }: DeploymentChange) =>
  ({ ...rest, ...(failure === undefined ? {} : { failure: failure ?? Prisma.DbNull }) }) as Omit<Prisma.DeploymentUncheckedUpdateInput, "tenantId" | "devices">; // as: parsed JSON
/** Changes a deployment that is locked. */
export const saveDeployment = async (tx: Clients, { tenantId }: SystemScope, deploymentId: string, change: DeploymentChange): Promise<DeploymentRow> => {
  const data = { ...toColumns(change), version: { increment: 1 } };
  const [row] = await tx.for({ tenantId }).deployment.updateManyAndReturn({ where: { deploymentId }, data });
  if (row === undefined) throw new Error(`deployment ${deploymentId} is gone although it is locked`);
  return narrow(row);
};

const SAVE_FOLLOWED = statement(
  "deployments.saveFollowed",
  `update deployments d set status = n.status, app_id = n.app_id, device_id = n.device_id, template = n.template, template_version = n.template_version,
      configuration = n.configuration, revision = n.revision, current_revision = n.current_revision, command_id = n.command_id, failure = n.failure,
      timeline = n.timeline, deleted_at = n.deleted_at, version = n.version, updated_at = now()
     from json_to_recordset($2::json) as n(deployment_id text, status text, app_id text, device_id text, template text, template_version text, configuration jsonb,
       revision int, current_revision int, command_id text, failure jsonb, timeline json, deleted_at timestamptz, version int)
    where d.tenant_id = $1 and d.deployment_id = n.deployment_id`,
);
/** Writes deployments that are locked and have followed their apps. */
export const saveFollowed = async (tx: Tx, { tenantId }: SystemScope, deployments: readonly DeploymentRow[]): Promise<void> => {
  const rows = deployments.map((row) => ({
    deployment_id: row.deploymentId,
    status: row.status,
    app_id: row.appId,
    device_id: row.deviceId,
    template: row.template,
    template_version: row.templateVersion,
    configuration: row.configuration,
    revision: row.revision,
    current_revision: row.currentRevision,
    command_id: row.commandId,
    failure: row.failure,
    timeline: row.timeline,
    deleted_at: row.deletedAt,
    version: row.version,
  }));
  await tx.query(SAVE_FOLLOWED, [tenantId, JSON.stringify(rows)]);
};

const list = createListing(
  "deployments",
  { createdAt: { kind: "time" }, name: { kind: "text" }, status: { kind: "text" } },
  { column: "deploymentId", kind: "text" },
);
type DeploymentsQuery = Parameters<typeof list>[0] & {
  readonly deviceId?: string | undefined;
  readonly template?: string | undefined;
  readonly status?: readonly string[] | undefined;
  readonly q?: string | undefined;
};

export const pageOfDeployments = (db: Clients, scope: SystemScope, query: DeploymentsQuery): Promise<Page<Deployment>> => {
  const { deployment } = db.for(scope);
  const { deviceId, template, status, q } = query;
  const where = {
    ...existing,
    ...(deviceId === undefined ? {} : { deviceId }),
    ...(template === undefined ? {} : { template }),
    ...(status === undefined ? {} : { status: { in: [...status] } }),
    ...(q === undefined ? {} : { name: { contains: likeLiteral(q), mode: "insensitive" as const } }),
  };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => deployment.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => deployment.count({ where }),
    record: (row: Prisma.DeploymentModel) => toDeployment(narrow(row)),
  });
};

const revisions = createListing("deployment-revisions", { revision: { kind: "number" } }, { column: "revision", kind: "number" });
export const pageOfRevisions = (
  db: Clients,
  scope: SystemScope,
  query: Parameters<typeof revisions>[0] & { readonly deploymentId: string },
): Promise<Page<DeploymentRevision>> => {
  const { deploymentRevision } = db.for(scope);
  const where = { deploymentId: query.deploymentId };
  return revisions(query, {
    owner: scope.tenantId,
    rows: (asked) => deploymentRevision.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => deploymentRevision.count({ where }),
    record: (row: Prisma.DeploymentRevisionModel) => recordOf(DeploymentRevision, row),
  });
};

/** What was deployed. */
export interface RevisionContent {
  readonly appType: string;
  readonly templateVersion: string;
  readonly config: AppConfig;
  readonly spec: AppSpec;
}

const toContent = ({ template, templateVersion, configuration, spec }: Prisma.DeploymentRevisionModel): RevisionContent => ({
  appType: template,
  templateVersion,
  config: configuration as AppConfig, // as: copied from the app
  spec: spec as AppSpec,
});

export const findRevision = async (db: Clients, { tenantId }: SystemScope, deploymentId: string, revision: number): Promise<RevisionContent | null> => {
  const row = await db.for({ tenantId }).deploymentRevision.findFirst({ where: { deploymentId, revision } });
  return row === null ? null : toContent(row);
};

export interface NewRevision extends RevisionContent {
  readonly deploymentId: DeploymentId;
  readonly revision: number;
  readonly rolledBackTo: number | null;
  readonly createdBy: string;
}
export const insertRevisions = async (tx: Clients, { tenantId }: SystemScope, made: readonly NewRevision[]): Promise<void> => {
  const data = made.map(
    ({ appType: template, config: configuration, ...rest }) =>
      ({ template, configuration, ...rest }) as Omit<Prisma.DeploymentRevisionUncheckedCreateInput, "tenantId">, // as: parsed JSON
  );
  if (data.length > 0) await tx.for({ tenantId }).deploymentRevision.createMany({ data });
};

/** Devices or enrollment tokens belong to it. */
export const isJoined = async (db: Clients, { tenantId }: SystemScope, deploymentId: string): Promise<boolean> =>
  (await db
    .for({ tenantId })
    .deployment.count({ where: { deploymentId, OR: [{ devices: { some: { deletedAt: null } } }, { enrollmentTokens: { some: {} } }] } })) > 0;
