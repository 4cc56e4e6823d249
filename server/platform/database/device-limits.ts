// The devices of a limited caller, in Prisma calls: forces the caller's limits into every condition on a device or on rows that belong to one.

import type { ModelWithDevice, OperationName } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { ruleCondition } from "../../core/people/fleet-rules.ts";
import type { DeviceLimit } from "../../core/scope.ts";

type Args = Readonly<Record<string, unknown>>;

/** Models with a relation to their device. A model that gets one does not compile until it stands here. */
const RELATED: Readonly<Record<Uncapitalize<ModelWithDevice>, true>> = {
  pairing: true,
  enrollment: true,
  alertTarget: true,
  app: true,
  deployment: true,
  desiredVersion: true,
  rolloutDevice: true,
  backup: true,
  backupRepository: true,
  backupRunItem: true,
  restore: true,
  volume: true,
  volumeScan: true,
  tunnel: true,
  meshRouter: true,
};

interface Model {
  readonly key: string;
  readonly columns: ReadonlySet<string>;
}
/** The devices among these that the caller may see. */
type Visible = (deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;

export const conditionOf = (limits: readonly DeviceLimit[]): Args => ({
  AND: limits.map(({ deviceIds, tags, fleetIds, rules }) => ({
    OR: [{ deviceId: { in: deviceIds } }, { tags: { hasSome: tags } }, { fleetIds: { hasSome: fleetIds } }, ...rules.map(ruleCondition)],
  })),
});

const and = (where: unknown, condition: Args): Args => {
  const { AND = [], ...rest } = (where ?? {}) as Args;
  return { ...rest, AND: [...(Array.isArray(AND) ? AND : [AND]), condition] };
};

const idsIn = (where: unknown): readonly string[] => {
  const { deviceId } = (where ?? {}) as Args;
  const named = typeof deviceId === "string" ? [deviceId] : (deviceId as Args | undefined)?.["in"];
  if (!Array.isArray(named)) throw new Error("the table has no relation to devices: for a limited caller name the devices in the condition");
  return named;
};

const limitWhere = async ({ key }: Model, where: unknown, limits: readonly DeviceLimit[], visible: Visible): Promise<Args> => {
  if (key === "device") return and(where, conditionOf(limits));
  if (key in RELATED) return and(where, { device: conditionOf(limits) });
  return { ...((where ?? {}) as Args), deviceId: { in: [...(await visible(idsIn(where)))] } };
};

/** A new row may only belong to a device that the caller sees. */
const checkRows = async ({ key }: Model, rows: readonly Args[], visible: Visible): Promise<void> => {
  if (key === "device") throw new AppError("FORBIDDEN", { details: { reason: "limited_access" } });
  const named = rows.map(({ deviceId }) => deviceId).filter((deviceId) => typeof deviceId === "string");
  const seen = await visible(named);
  const hidden = named.find((deviceId) => !seen.has(deviceId));
  if (hidden !== undefined) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId: hidden } });
};

const CREATING: ReadonlySet<OperationName> = new Set(["create", "createMany", "createManyAndReturn", "upsert"]);

/** Rewrites an operation on devices or their rows; leaves one on other tables as it is. */
export const limitToDevices =
  (limits: readonly DeviceLimit[], visible: Visible) =>
  async (model: Model, operation: OperationName, args: Args): Promise<Args> => {
    if (!model.columns.has("deviceId")) return args;
    const { where, data, create, update } = args;
    const written = [operation === "upsert" ? [create, update] : data].flat().filter((row) => row !== undefined) as Args[];
    if (CREATING.has(operation) || written.some((row) => "deviceId" in row)) await checkRows(model, written, visible);
    return CREATING.has(operation) ? args : { ...args, where: await limitWhere(model, where, limits, visible) };
  };
