// The rows of apps with the types of what their columns hold, and changes of them.
import { Prisma } from "../../../../prisma/generated/client.ts";
import type { App, AppConfig, AppFailure, AppId, AppSpec, CommandId, DeploymentId, DeviceId, ReportedApp, TimelineStep } from "../../../../protocol/index.ts";

type Narrowed = {
  readonly appId: AppId;
  readonly deviceId: DeviceId;
  readonly deploymentId: DeploymentId | null;
  readonly commandId: CommandId | null;
  readonly status: App["status"];
  readonly desiredState: App["desiredState"];
  readonly config: AppConfig;
  readonly spec: AppSpec;
  readonly reported: ReportedApp | null;
  readonly failure: AppFailure | null;
  readonly timeline: readonly TimelineStep[];
};
export type AppRow = Omit<Prisma.AppModel, keyof Narrowed> & Narrowed;
export const toAppRow = (row: Prisma.AppModel): AppRow => row as unknown as AppRow; // as: only this feature writes the columns

export type AppPatch = Readonly<Partial<Omit<AppRow, "tenantId" | "appId" | "version">> & { version?: { readonly increment: 1 } }>;
/** Null clears a column of JSON. */
export const toColumns = ({ reported, failure, ...rest }: AppPatch) =>
  ({
    ...rest,
    ...(reported === undefined ? {} : { reported: reported ?? Prisma.DbNull }),
    ...(failure === undefined ? {} : { failure: failure ?? Prisma.DbNull }),
  }) as Omit<Prisma.AppUncheckedUpdateInput, "tenantId">; // as: parsed JSON
