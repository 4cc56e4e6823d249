// The console offers exactly the changes of apps and deployments that the gateway's states allow.
import { expect, test } from "vitest";
import { canApp, canDeployment } from "../../../portal/src/parts/apps/app-verbs.ts";
import { APP_STATUSES, DEPLOYMENT_STATUSES } from "../../../protocol/index.ts";
import { canMoveApp } from "../../../server/features/apps/states.ts";
import { canMoveDeployment } from "../../../server/features/deployments/states.ts";

test.each(["start", "stop", "restart", "update", "rollBack", "remove"] as const)("an app is offered `%s` where the gateway allows it", (verb) => {
  expect(APP_STATUSES.filter((status) => canApp(status, verb))).toEqual(APP_STATUSES.filter((status) => canMoveApp(status, verb)));
});

test.each([
  ["stop", "stop"],
  ["cancel", "cancel"],
  ["rollBack", "rollBack"],
  ["remove", "remove"],
] as const)("a deployment is offered `%s` where the gateway allows it", (verb, event) => {
  expect(DEPLOYMENT_STATUSES.filter((status) => canDeployment(status, verb))).toEqual(DEPLOYMENT_STATUSES.filter((status) => canMoveDeployment(status, event)));
});

test("a deployment that has an app is offered another one where the gateway allows it", () => {
  // One that is pending has no app.
  const allowed = DEPLOYMENT_STATUSES.filter((status) => status !== "pending" && canMoveDeployment(status, status === "active" ? "update" : "queue"));
  expect(DEPLOYMENT_STATUSES.filter((status) => canDeployment(status, "redeploy"))).toEqual(allowed);
  expect(DEPLOYMENT_STATUSES.filter((status) => canDeployment(status, "start"))).toEqual(allowed.filter((status) => status !== "active"));
});
