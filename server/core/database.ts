// The database as features use it: Prisma limited to one tenant, Prisma without that limit, and raw SQL.
import type { Prisma, PrismaClient } from "../../prisma/generated/client.ts";
import type { SqlTx } from "./events.ts";
import type { SystemScope } from "./scope.ts";

type ModelName = Prisma.ModelName;
type Delegate<M extends ModelName> = PrismaClient[Uncapitalize<M>];
type Scalars<M extends ModelName> = Prisma.TypeMap["model"][M]["payload"]["scalars"];

export type TenantModelName = { [M in ModelName]: "tenantId" extends keyof Scalars<M> ? M : never }[ModelName];

/** The models with a relation to their device. */
export type ModelWithDevice = { [M in ModelName]: "device" extends keyof Prisma.TypeMap["model"][M]["payload"]["objects"] ? M : never }[ModelName];

type OptionalArgs = "findFirst" | "findFirstOrThrow" | "findMany" | "count" | "deleteMany";
/**
 * Prisma's operations without findUnique: Prisma batches the findUnique calls of all callers within a moment, and the batch may need a transaction.
 * findFirst with the same key runs the same statement.
 */
export type OperationName =
  | OptionalArgs
  | "aggregate"
  | "groupBy"
  | "create"
  | "createMany"
  | "createManyAndReturn"
  | "update"
  | "updateMany"
  | "updateManyAndReturn"
  | "upsert"
  | "delete";

/** Removes the tenant, also from the unique keys that begin with it. */
type WithoutTenant<W> = W extends readonly (infer Each)[]
  ? WithoutTenant<Each>[]
  : W extends object
    ? { [K in keyof W as K extends "tenantId" ? never : K]: K extends `tenantId_${string}` ? Omit<NonNullable<W[K]>, "tenantId"> : W[K] }
    : W;
/** An upsert needs a key that begins with the tenant, or it could meet another tenant's row. */
type UpsertKey<W> = { [K in keyof W as K extends `tenantId_${string}` ? K : never]: Omit<NonNullable<W[K]>, "tenantId"> };
type Scoped<A, O> = {
  [K in keyof A as K extends "cursor" ? never : K]: K extends "where"
    ? O extends "upsert"
      ? UpsertKey<A[K]>
      : WithoutTenant<A[K]>
    : K extends "data" | "create" | "update"
      ? WithoutTenant<A[K]>
      : A[K];
};

type Run<D, O extends OperationName, Args> = O extends OptionalArgs
  ? <A extends Args>(args?: Prisma.SelectSubset<A, Args>) => Promise<Prisma.Result<D, A, O>>
  : <A extends Args>(args: Prisma.SelectSubset<A, Args>) => Promise<Prisma.Result<D, A, O>>;

/**
 * Reads and writes the rows of one tenant. Every condition and every new row gets its tenant here, so a store cannot forget it, and the id of
 * another tenant's row finds nothing. A caller who is limited to some devices meets only those and their rows. You may include relations in a read, since they lead to rows of the same tenant, but not in a write:
 * write each row through its own model.
 */
export type TenantClient = {
  readonly [M in TenantModelName as Uncapitalize<M>]: {
    readonly [O in OperationName]: Run<Delegate<M>, O, Scoped<Prisma.Args<Delegate<M>, O>, O>>;
  };
};

/** Not limited to a tenant: for credentials whose tenant is not yet known, for sweeps and for the operator. */
export type SystemClient = {
  readonly [M in ModelName as Uncapitalize<M>]: { readonly [O in OperationName]: Run<Delegate<M>, O, Prisma.Args<Delegate<M>, O>> };
};

/** Prisma, outside or inside a transaction. */
export interface Clients {
  for(scope: SystemScope): TenantClient;
  readonly system: SystemClient;
}

/** One transaction for Prisma and raw SQL; both see each other's uncommitted rows. */
export interface Tx extends SqlTx, Clients {
  /** Whether what was asked is the reason of an error, not the database: the same with other rows would go well. */
  failsAlone(error: unknown): boolean;
}
