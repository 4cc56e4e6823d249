// Prisma limited to one tenant. Hand-made and no extension of Prisma's: an extension keeps neither the models without a tenant away nor the types.

import { Prisma } from "../../../prisma/generated/client.ts";
import { deviceLimitsOf } from "../../core/access.ts";
import type { Clients, OperationName, SystemClient, TenantClient } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { HoldVersion } from "../../core/rows/row-versions.ts";
import type { DeviceLimit, SystemScope } from "../../core/scope.ts";
import { conditionOf, limitToDevices } from "./device-limits.ts";
import type { RunOperation } from "./prisma-clients.ts";

type Args = Readonly<Record<string, unknown>>;
/** Rewrites what a caller gives to an operation. */
type Rewrite = (model: Model, operation: OperationName, args: Args) => Args | Promise<Args>;

interface Model {
  /** As Prisma's client calls it. */
  readonly key: string;
  readonly columns: ReadonlySet<string>;
}

const OPERATIONS: Record<OperationName, true> = {
  findFirst: true,
  findFirstOrThrow: true,
  findMany: true,
  count: true,
  aggregate: true,
  groupBy: true,
  create: true,
  createMany: true,
  createManyAndReturn: true,
  update: true,
  updateMany: true,
  updateManyAndReturn: true,
  upsert: true,
  delete: true,
  deleteMany: true,
};
const OPERATION_NAMES = Object.keys(OPERATIONS) as readonly OperationName[];

const MODELS: readonly Model[] = Object.values(Prisma.ModelName).map((name) => ({
  key: name.charAt(0).toLowerCase() + name.slice(1),
  columns: new Set(Object.keys(Prisma[`${name}ScalarFieldEnum`])),
}));
export const TENANT_MODELS = MODELS.filter(({ columns }) => columns.has("tenantId"));

/** The tenant can be left out, and nobody can name another. */
const withTenant = (given: unknown, tenantId: string): Args => {
  const { tenantId: named = tenantId, ...rest } = (given ?? {}) as Args;
  if (named !== tenantId) throw new Error("the tenant comes from the scope, and this names another");
  return { ...rest, tenantId };
};

const scopedWhere = (where: unknown, tenantId: string): Args =>
  Object.fromEntries(
    Object.entries(withTenant(where, tenantId)).map(([name, value]) => [name, name.startsWith("tenantId_") ? withTenant(value, tenantId) : value]),
  );

/** Beside a unique key with the tenant in it Prisma wants nothing else: then PostgreSQL decides in one statement whether the row exists. */
const upsertWhere = (where: unknown, tenantId: string): Args => {
  const [key, ...more] = Object.entries(where as Args);
  if (key === undefined || more.length > 0 || !key[0].startsWith("tenantId_")) throw new Error("an upsert needs a unique key that begins with the tenant");
  return { [key[0]]: withTenant(key[1], tenantId) };
};

const checkColumns = (data: unknown, { key, columns }: Model): Args => {
  for (const name of Object.keys(data as Args)) if (!columns.has(name)) throw new Error(`${key}.${name} is no column: write each row through its own model`);
  return data as Args;
};

const newRows = (data: unknown, model: Model, tenantId: string): unknown =>
  Array.isArray(data) ? data.map((row) => newRows(row, model, tenantId)) : withTenant(checkColumns(data, model), tenantId);

const changes = (data: unknown, model: Model, tenantId: string): unknown => {
  withTenant(data, tenantId);
  return checkColumns(data, model);
};

const forTenant =
  (tenantId: string): ((...call: Parameters<Rewrite>) => Args) =>
  (model, operation, args) => {
    // A cursor would tell where another tenant's row stands.
    if (args["cursor"] !== undefined) throw new Error("page by a condition or an offset: a cursor knows no tenant");
    const { where, data, create, update } = args;
    switch (operation) {
      case "create":
      case "createMany":
      case "createManyAndReturn":
        return { ...args, data: newRows(data, model, tenantId) };
      case "upsert":
        return { ...args, where: upsertWhere(where, tenantId), create: newRows(create, model, tenantId), update: changes(update, model, tenantId) };
      case "update":
      case "updateMany":
      case "updateManyAndReturn":
        return { ...args, where: scopedWhere(where, tenantId), data: changes(data, model, tenantId) };
      default:
        return { ...args, where: scopedWhere(where, tenantId) };
    }
  };

/** Within the tenant, and within the devices that the caller is limited to. */
const forLimited = (run: RunOperation, tenantId: string, limits: readonly DeviceLimit[]): Rewrite => {
  const inTenant = forTenant(tenantId);
  const visible = async (deviceIds: readonly string[]): Promise<ReadonlySet<string>> => {
    const where = { tenantId, deviceId: { in: [...deviceIds] }, ...conditionOf(limits) };
    const rows = (await run((prisma) => prisma.device.findMany({ where, select: { deviceId: true } }))) as readonly { readonly deviceId: string }[]; // as: `run` returns what the operation does
    return new Set(rows.map(({ deviceId }) => deviceId));
  };
  const limit = limitToDevices(limits, visible);
  return async (model, operation, args) => limit(model, operation, inTenant(model, operation, args));
};

const asGiven: Rewrite = (_model, _operation, args) => args;

type Delegates = Record<string, Record<string, (args: Args) => PromiseLike<unknown>>>;

/** An object with one getter per model: what a call does not use, it does not pay for. */
const clientClass = (models: readonly Model[]) => {
  class Client {
    readonly run: RunOperation;
    readonly rewrite: Rewrite;
    constructor(run: RunOperation, rewrite: Rewrite) {
      this.run = run;
      this.rewrite = rewrite;
    }
  }
  for (const model of models) {
    const get = function (this: Client) {
      const { run, rewrite } = this;
      // async, so that a refusal rejects as any other error does.
      const operation = (name: OperationName) => [
        name,
        async (args: Args = {}) => {
          const given = rewrite(model, name, args);
          const rewritten = given instanceof Promise ? await given : given;
          return run((prisma) => (prisma as unknown as Delegates)[model.key]?.[name]?.(rewritten) as PromiseLike<unknown>);
        },
      ];
      return Object.fromEntries(OPERATION_NAMES.map(operation));
    };
    Object.defineProperty(Client.prototype, model.key, { get });
  }
  return Client;
};
const Tenant = clientClass(TENANT_MODELS);
const System = clientClass(MODELS);

export const createClients = (run: RunOperation): Clients => ({
  for: (scope: SystemScope) => {
    const { tenantId } = scope;
    // Prisma takes an undefined condition for none at all.
    if (!tenantId) throw new Error("a scope without a tenant reads nothing");
    const limits = deviceLimitsOf(scope);
    return new Tenant(run, limits.length === 0 ? forTenant(tenantId) : forLimited(run, tenantId, limits)) as unknown as TenantClient;
  },
  system: new System(run, asGiven) as unknown as SystemClient,
});

/** The model that has this field for its id: the one named after it, or the only one that begins with it. */
export const versionedModel = (field: string): string | undefined => {
  const fitting = MODELS.filter(({ columns }) => columns.has("version") && [...columns][0] === field).map(({ key }) => key);
  return fitting.find((key) => `${key}Id` === field) ?? (fitting.length === 1 ? fitting[0] : undefined);
};

interface Versioned {
  updateMany(args: { readonly where: object; readonly data: object }): Promise<{ readonly count: number }>;
  findFirst(args: { readonly where: object; readonly select: object }): Promise<{ readonly version: number } | null>;
}

export const holdVersion: HoldVersion = async (tx, { tenantId }, { field, versions }, input) => {
  const id = (input as Args)[field];
  const model = versionedModel(field);
  if (model === undefined) throw new Error(`no model has a version and the id ${field}`);
  // The handler answers another tenant's id as it does an unknown one.
  if (field === "tenantId" && tenantId !== null && id !== tenantId) return;
  const client = tenantId === null ? tx.system : tx.for({ tenantId });
  const rows = client[model as keyof typeof client] as unknown as Versioned; // as: every model has both operations
  const where = { [field]: id };
  for (const version of new Set(versions)) if ((await rows.updateMany({ where: { ...where, version }, data: { version } })).count > 0) return;
  const row = await rows.findFirst({ where, select: { version: true } });
  if (row !== null) throw new AppError("VERSION_CONFLICT", { details: { currentVersion: row.version } });
};
