// Rows of apps, and the versions of what devices should run.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { Page } from "../../../../protocol/index.ts";
import type { Clients, Tx } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing, likeLiteral } from "../../../core/rows/listing.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { type AppPatch, type AppRow, toAppRow, toColumns } from "./app-row.ts";
import { drifted, outdatedBy, type TemplateVersions } from "./attention.ts";

const existing = { removedAt: null } as const;

/** For the plan. */
export const countApps = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).app.count({ where: existing });

export const countAppsByStatus = async (db: Clients, scope: SystemScope): Promise<ReadonlyMap<string, number>> => {
  const counts = await db.for(scope).app.groupBy({ by: ["status"], where: existing, _count: true });
  return new Map(counts.map(({ status, _count }) => [status, _count]));
};

export interface DeviceAppCounts {
  readonly total: number;
  readonly error: number;
}
const COUNT_BY_DEVICE = statement<DeviceAppCounts & { readonly device_id: string }>(
  "apps.countByDevice",
  `select a.device_id, count(*)::int as total, (count(*) filter (where a.status = 'error'))::int as error from apps a
    where a.tenant_id = $1 and a.device_id = any($2::text[]) and a.removed_at is null group by a.device_id`,
);
/** For a page of devices at once. */
export const countAppsByDevice = async (sql: SqlTx, { tenantId }: SystemScope, deviceIds: readonly string[]): Promise<ReadonlyMap<string, DeviceAppCounts>> => {
  const rows = await sql.query(COUNT_BY_DEVICE, [tenantId, deviceIds]);
  return new Map(rows.map(({ device_id, total, error }) => [device_id, { total, error }]));
};

const list = createListing("apps", { createdAt: { kind: "time" }, name: { kind: "text" }, status: { kind: "text" } }, { column: "appId", kind: "text" });
type AppsQuery = Parameters<typeof list>[0] & {
  readonly deviceId?: string | undefined;
  readonly deploymentId?: string | undefined;
  readonly appType?: string | undefined;
  readonly status?: readonly string[] | undefined;
  readonly q?: string | undefined;
  readonly drift?: boolean | undefined;
  readonly outdated?: boolean | undefined;
};

const either = (wanted: boolean | undefined, condition: Prisma.AppWhereInput): Prisma.AppWhereInput =>
  wanted === undefined ? {} : wanted ? condition : { NOT: condition };

export const pageOfApps = (db: Clients, scope: SystemScope, query: AppsQuery, versions: TemplateVersions): Promise<Page<AppRow>> => {
  const { app } = db.for(scope);
  const { deviceId, deploymentId, appType, status, q, drift, outdated } = query;
  const where = {
    ...existing,
    AND: [either(drift, drifted), either(outdated, outdatedBy(versions))],
    ...(deviceId === undefined ? {} : { deviceId }),
    ...(deploymentId === undefined ? {} : { deploymentId }),
    ...(appType === undefined ? {} : { appType }),
    ...(status === undefined ? {} : { status: { in: [...status] } }),
    ...(q === undefined ? {} : { name: { contains: likeLiteral(q), mode: "insensitive" as const } }),
  };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => app.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: () => app.count({ where }),
    record: toAppRow,
  });
};

export const findApp = async (db: Clients, scope: SystemScope, appId: string): Promise<AppRow | null> => {
  const row = await db.for(scope).app.findFirst({ where: { appId, ...existing } });
  return row === null ? null : toAppRow(row);
};

/** The apps among these that the caller sees, with their names. */
export const findNamedApps = async (db: Clients, scope: SystemScope, appIds: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  const rows = await db.for(scope).app.findMany({ where: { appId: { in: [...appIds] }, ...existing }, select: { appId: true, name: true } });
  return new Map(rows.map(({ appId, name }) => [appId, name]));
};

/** The command of the app's last change. */
export const commandOfApp = async (db: Clients, scope: SystemScope, appId: string): Promise<string | null> =>
  (await db.for(scope).app.findFirst({ where: { appId }, select: { commandId: true } }))?.commandId ?? null;

/** The apps with these ids, or all, in the order of their ids. */
export const findApps = async (db: Clients, scope: SystemScope, appIds: readonly string[] | null, limit: number): Promise<readonly AppRow[]> => {
  const where = { ...existing, ...(appIds === null ? {} : { appId: { in: [...appIds] } }) };
  return (await db.for(scope).app.findMany({ where, orderBy: { appId: "asc" }, take: limit })).map(toAppRow);
};

/** The apps of the device, in the order of their ids. */
export const appsOnDevice = async (db: Clients, scope: SystemScope, deviceId: string): Promise<readonly AppRow[]> =>
  (await db.for(scope).app.findMany({ where: { deviceId, ...existing }, orderBy: { appId: "asc" } })).map(toAppRow);

/** One is usual. */
const MAX_OF_DEPLOYMENT = 100;
export const appsOfDeployment = async (db: Clients, scope: SystemScope, deploymentId: string): Promise<readonly AppRow[]> =>
  (await db.for(scope).app.findMany({ where: { deploymentId, ...existing }, orderBy: { appId: "asc" }, take: MAX_OF_DEPLOYMENT })).map(toAppRow);

const LOCK_ONE = statement<{ readonly app_id: string }>(
  "apps.lockOne",
  "select a.app_id from apps a where a.tenant_id = $1 and a.app_id = $2 for no key update",
);
/** Until the transaction ends, nobody else changes the app. Null: there is no such app, or none that a limited caller sees. */
export const lockApp = async (tx: Tx, scope: SystemScope, appId: string): Promise<AppRow | null> => {
  await tx.query(LOCK_ONE, [scope.tenantId, appId]);
  return findApp(tx, scope, appId);
};

type Given = "appId" | "deviceId" | "deploymentId" | "name" | "appType" | "templateVersion" | "config" | "spec" | "secrets" | "secretsVersion" | "secretKeys";
export type NewApp = Pick<AppRow, Given | "desiredVersion" | "timeoutSeconds" | "commandId" | "createdBy" | "timeline">;
export const insertApp = async (tx: Clients, scope: SystemScope, made: NewApp): Promise<AppRow> =>
  toAppRow(await tx.for(scope).app.create({ data: made as NewApp & Pick<Prisma.AppUncheckedCreateInput, "config" | "spec" | "timeline"> })); // as: parsed JSON

/** Changes an app that is locked. */
export const saveApp = async (tx: Clients, { tenantId }: SystemScope, appId: string, change: AppPatch): Promise<AppRow> => {
  const [row] = await tx.for({ tenantId }).app.updateManyAndReturn({ where: { appId }, data: toColumns(change) });
  if (row === undefined) throw new Error(`app ${appId} is gone although it is locked`);
  return toAppRow(row);
};

/** Returns the new version. Until the transaction ends, nobody else changes what the device should run. */
export const raiseDesired = async (tx: Clients, { tenantId }: SystemScope, deviceId: string): Promise<number> => {
  const { version } = await tx.for({ tenantId }).desiredVersion.upsert({
    where: { tenantId_deviceId: { deviceId } },
    create: { deviceId, version: 1 },
    update: { version: { increment: 1 } },
  });
  return version;
};

export const readDesired = async (db: Clients, { tenantId }: SystemScope, deviceId: string): Promise<number> =>
  (await db.for({ tenantId }).desiredVersion.findFirst({ where: { deviceId }, select: { version: true } }))?.version ?? 0;

const FORGOTTEN_AT_ONCE = 500;
/** Forgets removed apps of all tenants. True if there may be more. */
export const forgetRemoved = async (db: Clients, before: Date): Promise<boolean> =>
  (await db.system.app.deleteMany({ where: { removedAt: { lt: before } }, limit: FORGOTTEN_AT_ONCE })).count === FORGOTTEN_AT_ONCE;
