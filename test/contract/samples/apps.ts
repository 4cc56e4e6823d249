// Apps and deployments for samples, as their agents would have left them.
import { AppSpec } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { DEFAULTS, TEMPLATE } from "../../kit/gateway/app-template.ts";
import type { Stock } from "../stock.ts";

/** A device of its own, which whoever sees the stock's device sees too. Nobody signs as it, so it needs no secret of its own and no provisioning. */
const ownDevice = async ({ world, device }: Pick<Stock, "world" | "device">): Promise<string> => {
  const deviceId = newId("dev");
  await world.sql.query(
    `with made as (
       insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, platform, tags, secret)
       select $1, tenant_id, deployment_id, $2, $1, platform, tags, secret from devices where device_id = $3 returning device_id, tenant_id)
     insert into device_presence (device_id, tenant_id) select device_id, tenant_id from made`,
    [deviceId, newId("agt"), device.deviceId],
  );
  return deviceId;
};
export const CONTENT = [JSON.stringify(DEFAULTS), JSON.stringify(AppSpec.parse({ kind: "process", program: TEMPLATE, health: {} }))];
/** Only an agent's word makes an app run. */
export const newApp = async (
  stock: Pick<Stock, "world" | "tenant" | "device">,
  { status = "running", deploymentId = null as string | null, deviceId = "" } = {},
): Promise<{ appId: string; deviceId: string }> => {
  const [appId, on] = [newId("app"), deviceId || (await ownDevice(stock))];
  await stock.world.sql.query(
    `insert into apps (app_id, tenant_id, device_id, deployment_id, app_type, template_version, name, status, config, spec, desired_version, created_by)
     values ($1, $2, $3, $4, 'key-value', '1.0.0', 'sample', $5, $6, $7, 1, 'user:u')`,
    [appId, stock.tenant.tenantId, on, deploymentId, status, ...CONTENT],
  );
  return { appId, deviceId: on };
};
const anApp =
  (more: Record<string, unknown> = {}, status = "running") =>
  async (stock: Stock) => ({ appId: (await newApp(stock, { status })).appId, ...more });
const newSnapshot = async (stock: Stock) => {
  const { appId } = await newApp(stock);
  const snapshotId = newId("snp");
  await stock.world.sql.query(
    `insert into app_snapshots (snapshot_id, tenant_id, app_id, revision, app_type, template_version, config, spec, automatic, created_by)
     values ($1, $2, $3, 1, 'key-value', '1.0.0', $4, $5, false, 'user:u')`,
    [snapshotId, stock.tenant.tenantId, appId, ...CONTENT],
  );
  return { appId, snapshotId };
};
/** With two revisions and its app, or waiting for its app. */
const aDeployment =
  (more: Record<string, unknown> = {}, status = "active") =>
  async (stock: Stock) => {
    const [deploymentId, deviceId] = [newId("dep"), await ownDevice(stock)];
    const { tenantId } = stock.tenant;
    await stock.world.sql.query(
      `insert into deployments (deployment_id, tenant_id, name, status, template, template_version, device_id, configuration, revision, current_revision)
       values ($1, $2, $1, $3, 'key-value', '1.0.0', $4, $5, 2, 2)`,
      [deploymentId, tenantId, status, deviceId, CONTENT[0]],
    );
    await stock.world.sql.query(
      `insert into deployment_revisions (tenant_id, deployment_id, revision, template, template_version, configuration, spec, created_by)
       select $1, $2, n, 'key-value', '1.0.0', $3, $4, 'user:u' from generate_series(1, 2) as n`,
      [tenantId, deploymentId, ...CONTENT],
    );
    if (status === "pending") return { deploymentId, ...more };
    const { appId } = await newApp(stock, { status: status === "active" ? "running" : status, deploymentId, deviceId });
    await stock.world.sql.query("update deployments set app_id = $1 where deployment_id = $2", [appId, deploymentId]);
    return { deploymentId, ...more };
  };

const nothing = async () => ({});

export const APP_SAMPLES = {
  "apps.templates": nothing,
  "apps.template": async () => ({ templateId: "key-value" }),
  "apps.list": nothing,
  "apps.get": anApp(),
  "apps.wait": anApp({ status: ["running"], timeout: 0 }),
  "apps.timeline": anApp(),
  "apps.metrics": anApp({ range: "1h" }),
  // No agent has reported these apps, so there is no log to ask for, and a stream ends at once.
  "apps.logs": anApp({ tail: 5 }),
  "apps.followLogs": anApp(),
  "apps.create": async (stock: Stock) => ({ appType: "key-value", deviceId: await ownDevice(stock) }),
  "apps.change": anApp({ name: "renamed" }),
  "apps.remove": anApp(),
  "apps.start": anApp({}, "stopped"),
  "apps.stop": anApp(),
  "apps.restart": anApp(),
  "apps.upgrade": anApp(),
  "apps.secrets": async (stock: Stock) => ({ appId: (await newApp(stock, { deviceId: stock.device.deviceId })).appId }),
  "apps.setSecrets": anApp({ secrets: { KV_TOKEN: "sample" } }),
  "apps.listSnapshots": anApp(),
  "apps.createSnapshot": anApp({ metadata: { reason: "sample" } }),
  "apps.removeSnapshot": newSnapshot,
  "apps.rollback": newSnapshot,
  "agent.desiredState": nothing,
  "agent.latestUpdate": async () => ({ platform: "linux", arch: "x64" }),
  "agent.updatePackage": async () => ({ file: "sample.package.json" }),
  "agent.reportState": async () => ({ version: 0, apps: [] }),
  "agent.sendLogs": async () => ({ chunk: `${JSON.stringify({ followId: newId("flw"), n: 1 })}\n` }),
  "agent.reportEvents": async () => ({ events: [{ type: "disk.smart_failure", severity: "warning", timestamp: "2026-11-22T10:00:00.000Z" }] }),
  "deployments.list": nothing,
  "deployments.listOfTenant": async ({ tenant }: Stock) => ({ tenantId: tenant.tenantId }),
  "deployments.get": aDeployment(),
  "deployments.create": async (stock: Stock) => ({ name: newId("store"), appName: "key-value", deviceId: await ownDevice(stock) }),
  "deployments.change": async (stock: Stock) => ({ ...(await aDeployment()(stock)), name: newId("store") }),
  "deployments.remove": aDeployment(),
  "deployments.redeploy": aDeployment({ configuration: { maxKeys: 5 } }),
  "deployments.stop": aDeployment(),
  "deployments.start": aDeployment({}, "stopped"),
  "deployments.cancel": aDeployment({}, "pending"),
  "deployments.rollback": aDeployment({ toRevision: 1 }),
  "deployments.plan": aDeployment({ configuration: { maxKeys: 5 } }),
  "deployments.listRevisions": aDeployment(),
  "deployments.listApps": aDeployment(),
  "deployments.wait": aDeployment({ status: ["active"], timeout: 0 }),
  "deployments.timeline": aDeployment(),
  "deployments.logs": aDeployment({ tail: 5 }),
  "deployments.followLogs": aDeployment(),
  "deployments.dashboard": aDeployment(),
  "deployments.exportDashboard": aDeployment(),
};
