// Between rows of apps and what others see of them: people, and the device's agent.
import { App, type DesiredApp, type ReportedApp } from "../../../protocol/index.ts";
import { recordOf } from "../../core/rows/records.ts";
import { isInTransition } from "./states.ts";
import type { AppRow } from "./store/app-row.ts";

export type { AppRow } from "./store/app-row.ts";

/** Whether the app is not as it should be, and nothing is under way to change it. */
export const drifts = ({ status, desiredState, revision, reported }: AppRow): boolean => {
  if (isInTransition(status) || status === "removed") return false;
  if (reported === null) return desiredState !== "removed";
  return reported.state !== desiredState || (desiredState === "running" && reported.revision !== revision);
};

const shownReport = ({ appId: _id, failure: _failure, ...rest }: ReportedApp): App["reported"] => rest;

export const toApp = (row: AppRow): App => {
  const drift = drifts(row);
  const reported = row.reported === null ? null : shownReport(row.reported);
  return recordOf(App, { ...row, id: row.appId, drift, driftSince: drift ? row.driftSince : null, reported });
};

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
