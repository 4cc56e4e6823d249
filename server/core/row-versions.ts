// Holds a record at the version that a caller has read, for changes that take no version themselves.
import { Prisma } from "../../prisma/generated/client.ts";
import type { Tx } from "./database.ts";
import { AppError } from "./errors.ts";
import type { OpenScope } from "./scope.ts";

export interface HeldRecord {
  /** The field of the input that names the record, which is also the id's column. */
  readonly field: string;
  readonly versions: readonly number[];
}

const MODELS = Object.values(Prisma.ModelName)
  .map((name) => ({ key: name.charAt(0).toLowerCase() + name.slice(1), columns: Object.keys(Prisma[`${name}ScalarFieldEnum`]) }))
  .filter(({ columns }) => columns.includes("version"));

/** The model that has this field for its id: the one named after it, or the only one that begins with it. */
export const modelOf = (field: string): string | undefined => {
  const fitting = MODELS.filter(({ columns }) => columns[0] === field).map(({ key }) => key);
  return fitting.find((key) => `${key}Id` === field) ?? fitting[0];
};

interface Rows {
  updateMany(args: { readonly where: object; readonly data: object }): Promise<{ readonly count: number }>;
  findFirst(args: { readonly where: object; readonly select: object }): Promise<{ readonly version: number } | null>;
}

/** Rejects with VERSION_CONFLICT unless the record has one of the versions, and keeps others from changing it until the transaction ends. */
export const holdVersion = async (tx: Tx, { tenantId }: OpenScope, { field, versions }: HeldRecord, input: unknown): Promise<void> => {
  const id = (input as Readonly<Record<string, unknown>>)[field];
  const model = modelOf(field);
  if (model === undefined) throw new Error(`no model has a version and the id ${field}`);
  // The handler answers another tenant's id as it does an unknown one.
  if (field === "tenantId" && tenantId !== null && id !== tenantId) return;
  const client = tenantId === null ? tx.system : tx.for({ tenantId });
  const rows = client[model as keyof typeof client] as unknown as Rows; // as: every model has both operations
  const where = { [field]: id };
  for (const version of new Set(versions)) if ((await rows.updateMany({ where: { ...where, version }, data: { version } })).count > 0) return;
  const row = await rows.findFirst({ where, select: { version: true } });
  if (row !== null) throw new AppError("VERSION_CONFLICT", { details: { currentVersion: row.version } });
};
