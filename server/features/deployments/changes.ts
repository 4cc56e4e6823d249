// Changes of deployments by people: create, deploy again, start, stop, cancel, roll back, delete.
import { contract, type DeviceId } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Afterwards, Handlers } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import { addTimelineStep } from "../../core/structures/timeline.ts";
import type { Placing } from "../apps/index.ts";
import type { FeatureKit } from "../kit.ts";
import { eventData, type TakeStep } from "./follow.ts";
import { type DeploymentEvent, moveDeployment } from "./states.ts";
import {
  type DeploymentRow,
  findDeployment,
  findRevision,
  hasName,
  insertDeployment,
  isJoined,
  lockDeployment,
  saveDeployment,
  toDeployment,
} from "./store/deployments.ts";

export interface DeploymentChangesDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan"> {
  readonly placing: () => Placing;
  readonly take: TakeStep;
}

type H = Handlers<typeof contract.deployments>;
const unknown = (deploymentId: string): AppError => new AppError("DEPLOYMENT_NOT_FOUND", { details: { deploymentId } });
const taken = (name: string): AppError => new AppError("DEPLOYMENT_ALREADY_EXISTS", { details: { name } });

/** The name of a deployment that nobody named. */
const nameFor = (templateId: string | null, deploymentId: string): string => `${templateId ?? "group"}-${deploymentId.slice(-6).toLowerCase()}`;

interface Work {
  readonly tx: Tx;
  readonly scope: TenantScope;
  readonly afterwards: Afterwards;
}
type Deployed = DeploymentRow & { readonly appId: NonNullable<DeploymentRow["appId"]> };

/** Answers with the deployment's own states, before the app's are asked. */
const requireApp = (row: DeploymentRow, event: DeploymentEvent): Deployed => {
  const { appId } = row;
  const to = moveDeployment(row.status, event);
  if (appId === null)
    throw new AppError("INVALID_STATE_TRANSITION", { details: { from: row.status, to, allowed: row.template === null ? [] : ["cancelling", "deleting"] } });
  return { ...row, appId };
};

export const createDeploymentChanges = (deps: DeploymentChangesDeps) => {
  const { placing, take } = deps;
  const find = async ({ tx, scope }: Pick<Work, "tx" | "scope">, deploymentId: string): Promise<DeploymentRow> => {
    const row = await findDeployment(tx, scope, deploymentId);
    if (row === null) throw unknown(deploymentId);
    return row;
  };

  const start = async ({ tx, scope, afterwards }: Work, row: DeploymentRow): Promise<void> =>
    afterwards((await placing().start(tx, scope, requireApp(row, "queue").appId)).notify);
  const stop = async ({ tx, scope, afterwards }: Work, row: DeploymentRow): Promise<void> =>
    afterwards((await placing().stop(tx, scope, requireApp(row, "stop").appId)).notify);

  /** Resolves to what the transaction does: before it, the node that holds the device writes what it has sent. */
  const prepareCancel = async (scope: TenantScope, deploymentId: string): Promise<(work: Work, row: DeploymentRow) => Promise<void>> => {
    const by = actorOf(scope.principal);
    const seen = await findDeployment(deps.db, scope, deploymentId);
    const { appId = null, deviceId = null, commandId = null } = seen ?? {};
    if (appId === null || deviceId === null || commandId === null) {
      return async ({ tx }, row) => {
        const locked = (await lockDeployment(tx, scope, row.deploymentId)) ?? row;
        const cancelling = await take(tx, scope, locked, { event: "cancel", by });
        // An app that was placed meanwhile has a command, whose end moves the deployment on.
        if (cancelling.appId === null) await take(tx, scope, cancelling, { event: "cancelled", by });
      };
    }
    const cancel = await placing().cancel(scope, { appId, deviceId, commandId });
    return async ({ tx, afterwards }, row) => {
      const { notify } = await cancel(tx, async () => {
        const locked = (await lockDeployment(tx, scope, row.deploymentId)) ?? row;
        await take(tx, scope, locked, { event: "cancel", by });
      });
      afterwards(notify);
    };
  };

  const doing =
    (change: (work: Work, row: DeploymentRow) => Promise<void>): H["stop"] =>
    ({ scope, commit }, { deploymentId }) =>
      commit(async (tx, afterwards) => {
        const work = { tx, scope, afterwards };
        await change(work, await find(work, deploymentId));
        return toDeployment(await find(work, deploymentId));
      });

  const place = async ({ tx, scope, afterwards }: Work, row: DeploymentRow, deviceId: DeviceId, secrets: Readonly<Record<string, string>>): Promise<void> => {
    const { title, ...content } = placing().contents.prepare(scope, row.template ?? "", row.configuration ?? {});
    const { deploymentId, timeoutSeconds } = row;
    // People know an app by the name that they gave.
    const name = row.name === nameFor(row.template, deploymentId) ? title : row.name;
    afterwards((await placing().install(tx, scope, { content, deviceId, deploymentId, name, timeoutSeconds, secrets })).notify);
  };

  return { find, start, stop, place, prepareCancel, doing };
};
export type DeploymentWork = ReturnType<typeof createDeploymentChanges>;

export const createCreation =
  ({ clock, emit, plan, placing }: DeploymentChangesDeps, { find, place }: DeploymentWork): H["create"] =>
  ({ scope, commit, fail }, { tenantId = scope.tenantId, name, appName, appId, deviceId, configuration = {}, secrets = {}, timeoutSeconds }) => {
    if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
    const templateId = appName ?? appId;
    // A deployment without a device belongs to the tenant as a whole.
    if (deviceId === undefined && isLimited(scope)) throw new AppError("FORBIDDEN", { details: { reason: "limited_access", field: "deviceId" } });
    const content = templateId === undefined ? null : placing().contents.prepare(scope, templateId, configuration);
    const by = actorOf(scope.principal);
    const deploymentId = newId("dep");
    const called = name ?? nameFor(templateId ?? null, deploymentId);
    return commit(async (tx, afterwards) => {
      await plan.require(tx, scope, "deployments", 1);
      if (deviceId !== undefined) await placing().requireDevice(tx, scope, deviceId);
      if (await hasName(tx, scope, called)) throw taken(called);
      const status = content === null ? "active" : "pending";
      const made = {
        deploymentId,
        name: called,
        status,
        timeoutSeconds,
        createdBy: by,
        runtime: content?.spec.kind === "process" ? "process" : "docker-compose",
      };
      const about = content === null ? {} : { template: content.appType, templateVersion: content.templateVersion, configuration: content.config as object };
      const first = { at: clock.now().toISOString(), from: null, to: status, by, revision: 0, commandId: null, reason: null };
      const row = await insertDeployment(tx, scope, { ...made, ...about, deviceId: deviceId ?? null, timeline: addTimelineStep([], first) });
      await emit(tx, [happened(scope, contract.deployments.events.created, deploymentId, eventData(row, null))]);
      if (deviceId !== undefined) await place({ tx, scope, afterwards }, row, deviceId, secrets);
      return toDeployment(await find({ tx, scope }, deploymentId));
    });
  };

export const createChange = ({ placing }: Pick<DeploymentChangesDeps, "placing">, { find, start, stop, place, prepareCancel }: DeploymentWork): H["change"] => {
  const assign = async (work: Work, row: DeploymentRow, deviceId: DeviceId): Promise<void> => {
    if (row.status !== "pending" || row.appId !== null || row.template === null)
      throw new AppError("INVALID_STATE_TRANSITION", { details: { from: row.status, to: "queued", allowed: [] } });
    await placing().requireDevice(work.tx, work.scope, deviceId);
    await place(work, row, deviceId, {});
  };
  const rename = async ({ tx, scope }: Work, { deploymentId }: DeploymentRow, name: string): Promise<void> => {
    if (await hasName(tx, scope, name)) throw taken(name);
    await lockDeployment(tx, scope, deploymentId);
    await saveDeployment(tx, scope, deploymentId, { name });
  };
  return async ({ scope, commit, fail }, { deploymentId, name, status, deviceId, version }) => {
    const cancel = status === "cancelled" ? await prepareCancel(scope, deploymentId) : null;
    return commit(async (tx, afterwards) => {
      const work = { tx, scope, afterwards };
      if (version !== undefined) await lockDeployment(tx, scope, deploymentId);
      const row = await find(work, deploymentId);
      if (version !== undefined && version !== row.version) throw fail("VERSION_CONFLICT", { currentVersion: row.version });
      const turn = { active: start, stopped: stop, cancelled: cancel }[status ?? "active"];
      if (status !== undefined && status !== row.status) await turn?.(work, row);
      if (deviceId !== undefined && deviceId !== row.deviceId) await assign(work, row, deviceId);
      if (name !== undefined && name !== row.name) await rename(work, row, name);
      return toDeployment(await find(work, deploymentId));
    });
  };
};

export const createRemoval =
  ({ placing, take }: DeploymentChangesDeps, { find }: DeploymentWork): H["remove"] =>
  ({ scope, commit, fail }, { deploymentId, keepVolumes }) =>
    commit(async (tx, afterwards) => {
      const row = await find({ tx, scope }, deploymentId);
      if (row.isDefault || (await isJoined(tx, scope, deploymentId))) throw fail("DEPLOYMENT_IN_USE", { deploymentId });
      const by = actorOf(scope.principal);
      moveDeployment(row.status, "remove");
      const [app] = await placing().of(tx, scope, deploymentId);
      if (app !== undefined && row.status !== "cancelled") {
        afterwards((await placing().remove(tx, scope, app.summary.appId, keepVolumes)).notify);
        return null;
      }
      // No app, or one that is going already.
      const locked = (await lockDeployment(tx, scope, deploymentId)) ?? row;
      await take(tx, scope, await take(tx, scope, locked, { event: "remove", by }), { event: "removed", by });
      return null;
    });

/** The last revision that was active, if the deployment failed; the one before it otherwise. */
const activeBefore = ({ status, currentRevision, timeline }: DeploymentRow): number | null =>
  status === "failed" ? currentRevision : (timeline.findLast(({ to, revision }) => to === "active" && revision !== currentRevision)?.revision ?? null);

type Again = Pick<H, "redeploy" | "rollback">;
export const createAgain = ({ placing }: DeploymentChangesDeps, { find }: DeploymentWork): Again => ({
  redeploy: ({ scope, commit }, { deploymentId, configuration, upgrade }) =>
    commit(async (tx, afterwards) => {
      const found = await find({ tx, scope }, deploymentId);
      const row = requireApp(found, found.status === "active" ? "update" : "queue");
      const { notify } = await placing().update(tx, scope, row.appId, {
        event: "update",
        content: (app) => nextContent(placing(), scope, app, { configuration, upgrade }),
      });
      afterwards(notify);
      return toDeployment(await find({ tx, scope }, deploymentId));
    }),
  rollback: ({ scope, commit, fail }, { deploymentId, toRevision }) =>
    commit(async (tx, afterwards) => {
      const row = requireApp(await find({ tx, scope }, deploymentId), "rollBack");
      const to = toRevision ?? activeBefore(row);
      const content = to === null ? null : await findRevision(tx, scope, deploymentId, to);
      if (content === null) throw fail("NO_PREVIOUS_REVISION", { deploymentId, toRevision: to });
      const { notify } = await placing().update(tx, scope, row.appId, { event: "rollBack", rolledBackTo: to, content: () => content });
      afterwards(notify);
      return toDeployment(await find({ tx, scope }, deploymentId));
    }),
});

/** What a new deployment of the app would run. */
export const nextContent = (
  { contents }: Placing,
  scope: TenantScope,
  app: { readonly appType: string; readonly templateVersion: string; readonly config: object; readonly spec: object },
  { configuration, upgrade }: { readonly configuration: Readonly<Record<string, unknown>> | undefined; readonly upgrade: boolean },
) => {
  const { appType, templateVersion, config, spec } = app as Parameters<Placing["contents"]["configure"]>[0]; // as: the app's own columns
  const given = configuration ?? config;
  if (upgrade) {
    const { title: _, ...content } = contents.prepare(scope, appType, given);
    return content;
  }
  return configuration === undefined ? { appType, templateVersion, config, spec } : contents.configure({ appType, templateVersion, config, spec }, given);
};
