// Between rows of apps and what others see of them: people, and the device's agent.
import type { Prisma } from "../../../prisma/generated/client.ts";
import {
  App,
  type AppConfig,
  type AppFailure,
  type AppId,
  type AppSpec,
  type CommandId,
  type DeploymentId,
  type DesiredApp,
  type DeviceId,
  type ReportedApp,
  type TimelineStep,
} from "../../../protocol/index.ts";
import { recordOf } from "../../core/records.ts";
import { isInTransition } from "./states.ts";

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
/** A row with the types of what its columns hold. */
export type AppRow = Omit<Prisma.AppModel, keyof Narrowed> & Narrowed;
export const toAppRow = (row: Prisma.AppModel): AppRow => row as unknown as AppRow; // as: only this feature writes the columns

/** Whether the app is not as it should be, and nothing is under way to change it. */
const drifts = ({ status, desiredState, revision, reported }: AppRow): boolean => {
  if (isInTransition(status) || status === "removed") return false;
  if (reported === null) return desiredState !== "removed";
  return reported.state !== desiredState || (desiredState === "running" && reported.revision !== revision);
};

const shownReport = ({ appId: _id, failure: _failure, ...rest }: ReportedApp): App["reported"] => rest;

export const toApp = (row: AppRow): App =>
  recordOf(App, { ...row, id: row.appId, drift: drifts(row), reported: row.reported === null ? null : shownReport(row.reported) });

/** What the device's agent is told. */
export const toDesired = (row: AppRow): DesiredApp => ({
  appId: row.appId,
  deploymentId: row.deploymentId,
  name: row.name,
  template: row.appType,
  templateVersion: row.templateVersion,
  revision: row.revision,
  state: row.desiredState,
  keepVolumes: row.keepVolumes,
  spec: row.spec,
  config: row.config,
  secretsVersion: row.secretsVersion,
});
