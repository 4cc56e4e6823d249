// Rows of snapshots: what an app was configured as.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { type AppConfig, AppSnapshot, type AppSpec } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { newId } from "../../../core/ids.ts";
import { recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { AppRow } from "./app-row.ts";

export const MAX_SNAPSHOTS = 50;
export const KEPT_AUTOMATIC = 5;

/** What runs of a template: all that an update can change. */
export interface Content {
  readonly appType: string;
  readonly templateVersion: string;
  readonly config: AppConfig;
  readonly spec: AppSpec;
}
const toContent = ({ appType, templateVersion, config, spec }: Prisma.AppSnapshotModel): Content => ({
  appType,
  templateVersion,
  config: config as AppConfig, // as: copied from the app's own columns
  spec: spec as AppSpec,
});

interface Kept {
  readonly automatic: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly by: string;
}
/** Only the newest five automatic snapshots stay. */
export const insertSnapshot = async (tx: Clients, { tenantId }: SystemScope, app: AppRow, { automatic, metadata, by }: Kept): Promise<AppSnapshot> => {
  const { appId, revision, appType, templateVersion, config, spec } = app;
  const { appSnapshot } = tx.for({ tenantId });
  const data = { snapshotId: newId("snp"), appId, revision, appType, templateVersion, config, spec, automatic, metadata, createdBy: by };
  const row = await appSnapshot.create({ data: data as typeof data & { config: Prisma.InputJsonObject; spec: Prisma.InputJsonObject } }); // as: parsed JSON
  if (automatic) {
    const old = await appSnapshot.findMany({
      where: { appId, automatic },
      orderBy: { snapshotId: "desc" },
      skip: KEPT_AUTOMATIC,
      select: { snapshotId: true },
    });
    if (old.length > 0) await appSnapshot.deleteMany({ where: { snapshotId: { in: old.map(({ snapshotId }) => snapshotId) } } });
  }
  return recordOf(AppSnapshot, row);
};

export const countSnapshots = (db: Clients, scope: SystemScope, appId: string): Promise<number> =>
  db.for(scope).appSnapshot.count({ where: { appId, automatic: false } });

/** Newest first. */
export const listSnapshots = async (db: Clients, scope: SystemScope, appId: string): Promise<AppSnapshot[]> =>
  (await db.for(scope).appSnapshot.findMany({ where: { appId }, orderBy: { snapshotId: "desc" } })).map((row) => recordOf(AppSnapshot, row));

export const findSnapshot = async (db: Clients, scope: SystemScope, appId: string, snapshotId: string): Promise<Content | null> => {
  const row = await db.for(scope).appSnapshot.findFirst({ where: { appId, snapshotId } });
  return row === null ? null : toContent(row);
};

/** What the app was in that revision; null when no snapshot tells. */
export const findContent = async (db: Clients, scope: SystemScope, appId: string, revision: number): Promise<Content | null> => {
  const row = await db.for(scope).appSnapshot.findFirst({ where: { appId, revision }, orderBy: { snapshotId: "desc" } });
  return row === null ? null : toContent(row);
};

export const removeSnapshot = async (tx: Clients, scope: SystemScope, appId: string, snapshotId: string): Promise<boolean> =>
  (await tx.for(scope).appSnapshot.deleteMany({ where: { appId, snapshotId } })).count === 1;
