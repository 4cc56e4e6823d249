// The checker of deployments notices each kind of broken promise, and accepts an honest history.
import { describe, expect, test } from "vitest";
import {
  checkDeployments,
  checkViewed,
  DEPLOY_VIOLATIONS,
  type DeploymentEventFact,
  type DeploymentFact,
  type DeployViolation,
  type OnDevice,
} from "./deploy-checker.ts";

const event = (
  type: string,
  [previous, status]: readonly [DeploymentEventFact["previous"], DeploymentEventFact["status"]],
  more: Partial<DeploymentEventFact> = {},
) => ({ id: `evt_${type}_${status}`, type, revision: 1, currentRevision: null, status, previous, failed: false, ...more }) satisfies DeploymentEventFact;

const INSTALLED = [
  event("created", [null, "pending"], { revision: 0 }),
  event("started", ["pending", "queued"]),
  event("succeeded", ["deploying", "active"], { currentRevision: 1 }),
];
const TAKEN_BACK = [
  event("started", ["active", "updating"], { revision: 2, currentRevision: 1 }),
  event("started", ["updating", "rolling_back"], { revision: 2, currentRevision: 1 }),
  event("rolled_back", ["rolling_back", "active"], { revision: 2, currentRevision: 1, failed: true }),
];
const APP = {
  appId: "app_1",
  deviceId: "dev_1",
  status: "running",
  desiredState: "running",
  revision: 1,
  reported: { state: "running", revision: 1 },
  open: 0,
} as const;
const fact = (more: Partial<DeploymentFact> = {}): DeploymentFact => ({
  ...{ deploymentId: "dep_1", status: "active", revision: 1, reason: null, message: null, app: APP, events: INSTALLED },
  ...more,
});
const RUNS: OnDevice = new Map([["app_1", { state: "running", revision: 1 }]]);
const brokenBy = (facts: readonly DeploymentFact[], onDevice: OnDevice = RUNS): readonly DeployViolation[] => {
  const { violations } = checkDeployments(["dep_1"], facts, onDevice);
  return DEPLOY_VIOLATIONS.filter((kind) => violations[kind].length > 0);
};
const crashed = [...INSTALLED, event("failed", ["active", "failed"], { currentRevision: 1, failed: true })];

describe("checker of deployments", () => {
  test("accepts an installation, an update that was taken back, a crash and its end", () => {
    expect(brokenBy([fact()])).toEqual([]);
    expect(brokenBy([fact({ events: [...INSTALLED, ...TAKEN_BACK] })])).toEqual([]);
    expect(brokenBy([fact({ events: [...crashed, event("succeeded", ["failed", "active"], { currentRevision: 1 })] })])).toEqual([]);
  });
  const failed = fact({ status: "failed", app: { ...APP, status: "error" }, events: crashed });
  const cases: readonly [DeployViolation, readonly DeploymentFact[], OnDevice?][] = [
    ["lost", []],
    ["hanging", [fact({ status: "updating", events: [...INSTALLED, ...TAKEN_BACK.slice(0, 1)] })]],
    ["hanging", [fact({ app: { ...APP, status: "installing" } })]],
    ["hanging", [fact({ app: { ...APP, open: 1 } })]],
    ["reasonless", [failed]],
    ["no-outcome", [fact({ events: INSTALLED.slice(0, 2) })]],
    ["outcome-twice", [fact({ events: [...INSTALLED, event("started", ["active", "rolling_back"]), ...TAKEN_BACK.slice(2)] })]],
    ["disordered", [fact({ events: [...INSTALLED, ...TAKEN_BACK.slice(1)] })]],
    ["wrong-rollback", [fact({ events: [...INSTALLED, ...TAKEN_BACK.slice(0, 2), { ...TAKEN_BACK[2], currentRevision: 2 } as DeploymentEventFact] })]],
    ["not-as-desired", [fact({ app: { ...APP, reported: { state: "running", revision: 2 } } })], new Map([["app_1", { state: "running", revision: 2 }]])],
    ["misreported", [fact({ app: { ...APP, reported: { state: "stopped", revision: 1 } } })]],
  ];
  test.for(cases)("reports %s", ([kind, facts, onDevice]) => {
    expect(brokenBy(facts, onDevice)).toContain(kind);
  });
  test("counts the events that a viewer missed and the subjects that it saw in another order, and accepts repeats", () => {
    const told = (subjectId: string, ...ids: readonly string[]) => ids.map((id) => ({ id, subjectId }));
    const written = [...told("a", "1", "2"), ...told("b", "3", "4")];
    expect(checkViewed(written, [...written, ...told("a", "1")])).toEqual({ unseen: 0, misordered: 0 });
    expect(checkViewed(written, [...told("a", "2", "1"), ...told("b", "4")])).toEqual({ unseen: 1, misordered: 1 });
  });
});
