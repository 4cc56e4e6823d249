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

const LOCK_ONE = statement<{ readonly deployment_id: string }>(
  "deployments.lockOne",
  "select d.deployment_id from deployments d where d.tenant_id = $1 and d.deployment_id = $2 for no key update",
);
/** Until the transaction ends, nobody else changes the deployment. Lock its app first. */
export const lockDeployment = async (tx: Tx, scope: SystemScope, deploymentId: string): Promise<DeploymentRow | null> => {
  await tx.query(LOCK_ONE, [scope.tenantId, deploymentId]);
  return findDeployment(tx, scope, deploymentId);
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
export const insertRevision = async (
  tx: Clients,
  { tenantId }: SystemScope,
  { appType: template, config: configuration, ...rest }: NewRevision,
): Promise<void> => {
  const data = { template, configuration, ...rest } as Omit<Prisma.DeploymentRevisionUncheckedCreateInput, "tenantId">; // as: parsed JSON
  await tx.for({ tenantId }).deploymentRevision.create({ data });
};

/** Devices or enrollment tokens belong to it. */
export const isJoined = async (db: Clients, { tenantId }: SystemScope, deploymentId: string): Promise<boolean> =>
  (await db
    .for({ tenantId })
    .deployment.count({ where: { deploymentId, OR: [{ devices: { some: { deletedAt: null } } }, { enrollmentTokens: { some: {} } }] } })) > 0;
