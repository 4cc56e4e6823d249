// Reads of deployments: lists, revisions, apps, steps, the plan of a change and the dashboard.
import type { contract, Deployment } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { pageWithActors, withActor, withActors } from "../../core/people/actors.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { LogReads, Placing } from "../apps/index.ts";
import type { Until } from "../live/index.ts";
import { nextContent } from "./changes.ts";
import { compareContents } from "./compare-contents.ts";
import { dashboardModel, describeDashboard } from "./dashboard.ts";
import { isInProgress } from "./states.ts";
import { type DeploymentRow, findDeployment, pageOfDeployments, pageOfRevisions, toDeployment } from "./store/deployments.ts";

export interface DeploymentReadsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly until: Until;
  readonly placing: () => Placing;
  readonly logs: () => LogReads;
}

type H = Handlers<typeof contract.deployments>;
type Names =
  | "list"
  | "listOfTenant"
  | "get"
  | "wait"
  | "plan"
  | "listRevisions"
  | "listApps"
  | "timeline"
  | "dashboard"
  | "exportDashboard"
  | "logs"
  | "followLogs";

export const createDeploymentReads = ({ db, clock, until, placing, logs }: DeploymentReadsDeps): Pick<H, Names> => {
  const find = async (scope: SystemScope, deploymentId: string): Promise<DeploymentRow> => {
    const row = await findDeployment(db, scope, deploymentId);
    if (row === null) throw new AppError("DEPLOYMENT_NOT_FOUND", { details: { deploymentId } });
    return row;
  };
  return {
    list: async ({ scope }, query) => pageWithActors(db, scope, await pageOfDeployments(db, scope, query)),
    listOfTenant: async ({ scope, fail }, { tenantId, ...query }) => {
      if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
      return pageWithActors(db, scope, await pageOfDeployments(db, scope, query));
    },
    get: async ({ scope }, { deploymentId }) => withActor(db, scope, toDeployment(await find(scope, deploymentId))),
    wait: async ({ scope, signal }, { deploymentId, status, timeout: seconds }) => {
      const read = async (): Promise<Deployment> => toDeployment(await find(scope, deploymentId));
      const reached = await until(scope, { subjectId: deploymentId, seconds, signal, read, isDone: (deployment) => status.includes(deployment.status) });
      return withActor(db, scope, reached);
    },
    plan: createPlanning({ db, placing }, find),
    listRevisions: async ({ scope }, query) => {
      await find(scope, query.deploymentId);
      return pageWithActors(db, scope, await pageOfRevisions(db, scope, query));
    },
    listApps: async ({ scope }, { deploymentId }) => {
      await find(scope, deploymentId);
      return { items: (await placing().of(db, scope, deploymentId)).map(({ summary }) => summary) };
    },
    timeline: async ({ scope }, { deploymentId }) => {
      const { timeline, commandId, deviceId, status } = await find(scope, deploymentId);
      return {
        items: await withActors(db, scope, timeline),
        waitsFor: commandId !== null && deviceId !== null && isInProgress(status) ? { commandId, deviceId } : null,
      };
    },
    logs: async ({ scope, signal }, { deploymentId, ...asked }) => {
      await find(scope, deploymentId);
      return logs().tail(scope, await logs().appOf(scope, deploymentId), { ...asked, signal });
    },
    followLogs: async function* ({ scope, signal }, { deploymentId }) {
      await find(scope, deploymentId);
      yield* logs().follow(scope, await logs().appOf(scope, deploymentId), signal);
    },
    dashboard: async ({ scope }, { deploymentId }) => {
      const row = await find(scope, deploymentId);
      return { deploymentId: row.deploymentId, tenantId: scope.tenantId, ...describeDashboard(row) };
    },
    exportDashboard: async ({ scope }, { deploymentId }) => {
      const row = await find(scope, deploymentId);
      return { deploymentId: row.deploymentId, exportedAt: clock.now().toISOString(), dashboard: dashboardModel(row) };
    },
  };
};

type Find = (scope: SystemScope, deploymentId: string) => Promise<DeploymentRow>;
const ACTION: Readonly<Partial<Record<Deployment["status"], "update" | "start">>> = { active: "update", stopped: "start" };

const createPlanning =
  ({ db, placing }: Pick<DeploymentReadsDeps, "db" | "placing">, find: Find): H["plan"] =>
  async ({ scope, fail }, { deploymentId, configuration, upgrade }) => {
    const row = await find(scope, deploymentId);
    if (row.template === null) throw fail("INVALID_STATE_TRANSITION", { from: row.status, to: "queued", allowed: [] });
    const [app] = await placing().of(db, scope, deploymentId);
    if (app === undefined) {
      const { title: _, ...content } = placing().contents.prepare(scope, row.template, configuration ?? row.configuration ?? {});
      return { deploymentId: row.deploymentId, action: "deploy", changes: compareContents(null, content), drift: false, revision: row.revision + 1 };
    }
    const changes = compareContents(app.content, nextContent(placing(), scope, app.content, { configuration, upgrade }));
    const isNothing = changes.length === 0 && !app.drift && row.status === "active";
    const action = isNothing ? "none" : (ACTION[row.status] ?? "deploy");
    return { deploymentId: row.deploymentId, action, changes, drift: app.drift, revision: row.revision + (isNothing ? 0 : 1) };
  };
