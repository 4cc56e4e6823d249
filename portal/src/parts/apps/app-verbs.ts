// What an app and a deployment can do next, as the gateway's states have it: what it would refuse is not offered.

export type AppVerb = "start" | "stop" | "restart" | "update" | "rollBack" | "remove";
export type DeploymentVerb = "start" | "stop" | "redeploy" | "rollBack" | "cancel" | "remove";

const APP: Readonly<Record<AppVerb, readonly string[]>> = {
  start: ["stopped", "error"],
  stop: ["running", "error"],
  restart: ["running"],
  update: ["running", "stopped", "error"],
  rollBack: ["running", "updating", "error"],
  remove: ["pending", "installing", "starting", "stopping", "restarting", "updating", "rolling_back", "running", "stopped", "error"],
};
const DEPLOYMENT: Readonly<Record<DeploymentVerb, readonly string[]>> = {
  start: ["stopped", "failed"],
  stop: ["active", "failed"],
  redeploy: ["active", "failed", "stopped"],
  rollBack: ["active", "failed", "updating"],
  cancel: ["pending", "queued", "deploying"],
  remove: [...["pending", "queued", "deploying", "active", "failed", "updating", "rolling_back", "stopping", "stopped", "cancelling", "cancelled"]],
};

export const canApp = (status: string, verb: AppVerb): boolean => APP[verb].includes(status);
export const canDeployment = (status: string, verb: DeploymentVerb): boolean => DEPLOYMENT[verb].includes(status);
