// A fleet whose devices run an app of an older version, and whose agents poll and answer by hand.
import type { DesiredApp, ReportedApp } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { TEMPLATE } from "../../kit/gateway/app-template.ts";
import type { Device, World } from "../../kit/gateway/world.ts";
import { failureIn, reportOf } from "../apps/kit.ts";
import { call, type Fleet, membersOf, step } from "./kit.ts";

export const APP = { subject: { kind: "app", template: TEMPLATE } };
export const OLD = "0.9.0";
export const NEW = "1.0.0";

export interface AppFleet extends Fleet {
  readonly devices: readonly Device[];
}

interface Polled {
  readonly commandId: string;
  readonly type: string;
  readonly payload: { readonly app: DesiredApp; readonly desiredVersion: number };
}
/** How an agent answers an order; null: not now. */
export type Answering = (device: Device, app: DesiredApp) => { readonly status: string; readonly app: ReportedApp } | null;

export const works: Answering = (_device, app) => ({ status: "succeeded", app: reportOf(app.appId, { revision: app.revision }) });
/** The agent finds the new revision unwell and has put the one before back. */
export const failsItsCheck: Answering = (_device, app) => ({
  status: "failed",
  app: reportOf(app.appId, { revision: app.revision - 1, failure: failureIn(app.revision) }),
});

/** Each device that has an order polls once and answers what it gets. */
export const poll = async ({ world }: Pick<Fleet, "world">, devices: readonly Device[], answering: Answering = works): Promise<number> => {
  let answered = 0;
  const { rows } = await world.sql.query("select distinct device_id from command_queue where device_id = any($1::text[])", [
    devices.map(({ deviceId }) => deviceId),
  ]);
  const waiting = new Set(rows.map(({ device_id }) => device_id));
  for (const device of devices.filter(({ deviceId }) => waiting.has(deviceId))) {
    const at = `/v1/devices/${device.deviceId}/commands`;
    const commands = ((await world.call(device.as, "GET", at)).body.data ?? []) as Polled[];
    for (const { commandId, type, payload } of commands) {
      const answer = type.startsWith("app.") ? answering(device, payload.app) : { status: "failed", app: null };
      if (answer === null) continue;
      const { status, app } = answer;
      const acked = await world.call(device.as, "POST", `${at}/${commandId}/ack`, { body: { status, ...(app === null ? {} : { output: { app } }) } });
      if (acked.status >= 300) throw new Error(`ack: ${acked.status} ${JSON.stringify(acked.body)}`);
      answered += 1;
    }
  }
  // Agents that poll are away in between; these are not.
  const ids = devices.map(({ deviceId }) => deviceId);
  await world.sql.query("update devices set status = 'online' where device_id = any($1::text[])", [ids]);
  return answered;
};

export const openAppFleet = async (world: World, size: number, { deployed = false } = {}): Promise<AppFleet> => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const devices: Device[] = [];
  for (let made = 0; made < size; made += 1) devices.push(await tenant.device());
  const deviceIds = devices.map(({ deviceId }) => deviceId);
  const place = { world, owner };
  const { fleetId } = await call(place, "POST", "/fleets", { name: newId("f"), deviceIds });
  for (const deviceId of deviceIds)
    if (deployed) await call(place, "POST", "/deployments", { appName: TEMPLATE, deviceId });
    else await call(place, "POST", "/apps", { appType: TEMPLATE, deviceId });
  await poll(place, devices);
  await world.sql.query("update apps set template_version = $2 where tenant_id = $1", [tenant.tenantId, OLD]);
  return { world, tenant, owner, fleetId, deviceIds, devices };
};

export interface AppNow {
  readonly status: string;
  readonly version: string;
  readonly revision: number;
}
export const appsOf = async ({ world, tenant }: Pick<Fleet, "world" | "tenant">): Promise<readonly (AppNow & { readonly device_id: string })[]> =>
  (
    await world.sql.query(
      "select device_id, status, template_version as version, revision from apps where tenant_id = $1 and removed_at is null order by app_id",
      [tenant.tenantId],
    )
  ).rows;

/** Steps and answers until no device has had an order for two rounds. */
export const runApps = async (fleet: AppFleet, answering: Answering = works): Promise<void> => {
  for (let quiet = 0, rounds = 0; quiet < 2 && rounds < 60; rounds += 1) {
    await step(fleet);
    quiet = (await poll(fleet, fleet.devices, answering)) === 0 ? quiet + 1 : 0;
  }
  await step(fleet, 2);
};

export const statesOf = async (fleet: Pick<Fleet, "world">, rolloutId: string): Promise<readonly string[]> =>
  (await membersOf(fleet, rolloutId)).map(({ status, code }) => (code === null ? status : `${status} ${code}`));
