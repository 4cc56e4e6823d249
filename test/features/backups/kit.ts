// A gateway whose jobs run when a test says so, and devices whose agents a test speaks for.
import { newApp } from "../../contract/samples/apps.ts";
import { openStock } from "../../contract/samples.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { type Answer, type Device, startWorld } from "../../kit/gateway/world.ts";

/** Answers hold what the contract says of them. */
type Data = Answer["body"];

export const SNAPSHOT = "7".repeat(64);
export const CREATED = {
  ...{ snapshotId: SNAPSHOT, size: 10, addedBytes: 4, files: 2, warnings: [], partial: false },
  ...{ consistency: "stopped", downtimeSeconds: 1, seconds: 3 },
};
export const RESTORED = { files: 2, bytes: 10, verified: true };
const REPORTED = { revision: 1, state: "running", health: "healthy", failure: null, restarts: 0, cpuPercent: null, memoryBytes: null, ports: {} };

const LIMITS_OFF = Object.fromEntries(["AGENT", "STANDARD", "TENANT", "PAIRING", "ANONYMOUS"].map((name) => [`RATE_LIMIT_${name}`, "off"]));

export const openBackups = async () => {
  const world = await startWorld(LIMITS_OFF, { settings: { withoutJobs: true } });
  const { sql } = world;

  const open = async () => {
    const stock = await openStock(world);
    const { tenantId } = stock.tenant;
    const call = (method: string, path: string, body?: object, as = stock.owner) => world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
    const ask = async (method: string, path: string, body?: object, as = stock.owner): Promise<Data> => {
      const { status, body: answer } = await call(method, path, body, as);
      if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`);
      return answer?.data;
    };
    const refusal = async (method: string, path: string, body?: object): Promise<readonly [number, string | undefined]> => {
      const { status, body: answer } = await call(method, path, body);
      return [status, answer?.code];
    };
    /** What the device is ordered to do, in the order in which it comes. */
    const poll = async (device: Device = stock.device): Promise<Data[]> => {
      const answer = await world.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands`);
      return answer.body?.data ?? answer.body?.commands ?? [];
    };
    const ack = async (commandId: string, body: object, device: Device = stock.device): Promise<void> => {
      await ask("POST", `/devices/${device.deviceId}/commands/${commandId}/ack`, body, device.as);
    };
    const destination = (body: object = {}) =>
      ask("POST", "/backup-destinations", { name: `shelf ${crypto.randomUUID().slice(0, 8)}`, kind: "local", ...body });
    await destination({ isDefault: true });
    /** One that its agent has reported, so that there may be data. */
    const app = async ({ device = stock.device, hasRun = true } = {}): Promise<string> => {
      const { appId } = await newApp(stock, { deviceId: device.deviceId });
      if (hasRun) await sql.query("update apps set reported = $2 where app_id = $1", [appId, { ...REPORTED, appId }]);
      return appId;
    };
    const backUp = (appId: string, more: object = {}, device: Device = stock.device) => ask("POST", `/devices/${device.deviceId}/backups`, { appId, ...more });
    /** A complete backup. */
    const made = async (appId: string, more: object = {}): Promise<string> => {
      const { backupId, commandId } = await backUp(appId, more);
      await poll();
      await ack(commandId, { status: "succeeded", output: CREATED });
      return backupId;
    };
    const online = (device: Device = stock.device) => sql.query("update devices set status = 'online' where device_id = $1", [device.deviceId]);
    return { ...stock, tenantId, sql, call, ask, refusal, poll, ack, destination, app, backUp, made, online, job: (name: string) => runJob(world, name) };
  };
  return { world, sql, open, close: () => world.close() };
};
export type BackupsRig = Awaited<ReturnType<typeof openBackups>>;
export type OpenTenant = Awaited<ReturnType<BackupsRig["open"]>>;
