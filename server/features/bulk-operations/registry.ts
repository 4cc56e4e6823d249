// The operations that work in bulk: what each needs, what its items are, and which single calls it stands for. Every effect is a row in PostgreSQL, so an
// item is done if and only if it says so; what calls out is not offered.
import type { BulkName, BulkParams, BulkTargetKind, Permission } from "../../../protocol/index.ts";
import { BULK_PARAMS } from "../../../protocol/index.ts";
import type { BulkWork } from "./perform.ts";
import { performAlone, type SingleCall } from "./perform-alone.ts";
import { orderCommands, tagDevices } from "./perform-together.ts";

export interface BulkEntry<N extends BulkName = BulkName> {
  /** As the single call's. */
  readonly permission: Permission;
  readonly params: (typeof BULK_PARAMS)[N];
  readonly target: BulkTargetKind;
  /** The single calls, by their names in the contract. */
  readonly singles: readonly string[];
  /** It decides who sees a device, so nobody with limited access may. */
  readonly unlimitedOnly?: true;
  /** The caller says how many devices it is about. */
  readonly confirmed?: (params: BulkParams<N>) => boolean;
  /** A stop takes back commands that no device has. */
  readonly withdraws?: true;
  /** Stops by itself if nobody says otherwise. */
  readonly stops?: true;
  readonly perform: BulkWork;
}

const call = (operation: SingleCall["operation"], input: (targetId: string, params: never) => object) => ({ operation, input });
type Made = ReturnType<typeof call>;
const alone = (...calls: readonly Made[]): Pick<BulkEntry, "perform" | "singles"> => ({
  singles: calls.map(({ operation }) => operation),
  perform: performAlone((targetId, params) => calls.map(({ operation, input }) => ({ operation, input: input(targetId, params as never) }))), // as: checked by its schema
});
const device = (targetId: string) => ({ deviceId: targetId });
const app = (targetId: string) => ({ appId: targetId });
const deployment = (targetId: string) => ({ deploymentId: targetId });
const onTarget =
  (id: (targetId: string) => object) =>
  (targetId: string, params: object): object => ({ ...id(targetId), ...params });

type P<N extends BulkName> = BulkParams<N>;

/** The calls that put a device into fleets and take it out of others. */
const moveFleets = (deviceId: string, { add, remove }: P<"device.fleet">): readonly SingleCall[] => [
  ...add.map((fleetId) => ({ operation: "fleets.addDevice" as const, input: { fleetId, deviceId } })),
  ...remove.map((fleetId) => ({ operation: "fleets.removeDevice" as const, input: { fleetId, deviceId } })),
];
const updateApp = (appId: string, { configuration }: P<"app.update">): readonly SingleCall[] => [
  configuration === undefined ? { operation: "apps.upgrade", input: { appId } } : { operation: "apps.change", input: { appId, config: configuration } },
];

export const REGISTRY: { readonly [N in BulkName]: BulkEntry<N> } = {
  "device.command": {
    permission: "device:command",
    params: BULK_PARAMS["device.command"],
    target: "device",
    singles: ["commands.queue"],
    confirmed: ({ type }) => type === "shell",
    withdraws: true,
    perform: orderCommands((params) => params as P<"device.command">), // as: checked by its schema
  },
  "device.tag": {
    permission: "device:update",
    params: BULK_PARAMS["device.tag"],
    target: "device",
    singles: ["devices.update"],
    unlimitedOnly: true,
    perform: tagDevices,
  },
  "device.move": {
    permission: "device:update",
    params: BULK_PARAMS["device.move"],
    target: "device",
    unlimitedOnly: true,
    ...alone(call("devices.update", onTarget(device))),
  },
  "device.fleet": {
    permission: "fleet:write",
    params: BULK_PARAMS["device.fleet"],
    target: "device",
    singles: ["fleets.addDevice", "fleets.removeDevice"],
    unlimitedOnly: true,
    perform: performAlone((targetId, params) => moveFleets(targetId, params as P<"device.fleet">)), // as: checked by its schema
  },
  "device.delete": {
    permission: "device:delete",
    params: BULK_PARAMS["device.delete"],
    target: "device",
    confirmed: () => true,
    stops: true,
    ...alone(call("devices.remove", device)),
  },
  "app.restart": { permission: "app:update", params: BULK_PARAMS["app.restart"], target: "app", ...alone(call("apps.restart", app)) },
  "app.start": { permission: "app:update", params: BULK_PARAMS["app.start"], target: "app", ...alone(call("apps.start", app)) },
  "app.stop": { permission: "app:update", params: BULK_PARAMS["app.stop"], target: "app", ...alone(call("apps.stop", app)) },
  "app.update": {
    permission: "app:update",
    params: BULK_PARAMS["app.update"],
    target: "app",
    singles: ["apps.upgrade", "apps.change"],
    perform: performAlone((targetId, params) => updateApp(targetId, params as P<"app.update">)), // as: checked by its schema
  },
  "app.remove": { permission: "app:delete", params: BULK_PARAMS["app.remove"], target: "app", stops: true, ...alone(call("apps.remove", onTarget(app))) },
  "deployment.redeploy": {
    permission: "deployment:deploy",
    params: BULK_PARAMS["deployment.redeploy"],
    target: "deployment",
    ...alone(call("deployments.redeploy", onTarget(deployment))),
  },
  "deployment.stop": {
    permission: "deployment:deploy",
    params: BULK_PARAMS["deployment.stop"],
    target: "deployment",
    ...alone(call("deployments.stop", deployment)),
  },
  "deployment.start": {
    permission: "deployment:deploy",
    params: BULK_PARAMS["deployment.start"],
    target: "deployment",
    ...alone(call("deployments.start", deployment)),
  },
  "deployment.delete": {
    permission: "deployment:delete",
    params: BULK_PARAMS["deployment.delete"],
    target: "deployment",
    stops: true,
    ...alone(call("deployments.remove", onTarget(deployment))),
  },
  "agent.update": {
    permission: "device:command",
    params: BULK_PARAMS["agent.update"],
    target: "device",
    singles: ["commands.queue"],
    stops: true,
    withdraws: true,
    perform: orderCommands(() => AGENT_UPDATE),
  },
  "backup.create": {
    permission: "backup:create",
    params: BULK_PARAMS["backup.create"],
    target: "app",
    singles: ["backups.create"],
    perform: performAlone((appId, params, deviceId) => [{ operation: "backups.create", input: { deviceId, appId, ...params } }], true),
  },
  "backup.verify": {
    permission: "backup:verify",
    params: BULK_PARAMS["backup.verify"],
    target: "backup",
    ...alone(
      call(
        "backups.verify",
        onTarget((backupId) => ({ backupId })),
      ),
    ),
  },
  "tunnel.stop": {
    permission: "tunnel:update",
    params: BULK_PARAMS["tunnel.stop"],
    target: "tunnel",
    ...alone(call("tunnels.update", (tunnelId) => ({ tunnelId, status: "stopped" }))),
  },
  "alert.acknowledge": {
    permission: "alert:acknowledge",
    params: BULK_PARAMS["alert.acknowledge"],
    target: "alert",
    ...alone(
      call(
        "alerts.acknowledge",
        onTarget((alertId) => ({ alertId })),
      ),
    ),
  },
  "alert.resolve": {
    permission: "alert:acknowledge",
    params: BULK_PARAMS["alert.resolve"],
    target: "alert",
    ...alone(
      call(
        "alerts.resolve",
        onTarget((alertId) => ({ alertId })),
      ),
    ),
  },
};

const AGENT_UPDATE = BULK_PARAMS["device.command"].parse({ type: "agent-update" });
