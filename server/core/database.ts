// What a feature sees of the database: Prisma limited to one tenant, Prisma for what has no tenant, and raw SQL inside a transaction.
import type { Prisma, PrismaClient } from "../../prisma/generated/client.ts";
import type { SqlTx } from "./events.ts";
import type { SystemScope } from "./scope.ts";

type ModelName = Prisma.ModelName;
type Delegate<M extends ModelName> = PrismaClient[Uncapitalize<M>];
type Scalars<M extends ModelName> = Prisma.TypeMap["model"][M]["payload"]["scalars"];

export type TenantModelName = { [M in ModelName]: "tenantId" extends keyof Scalars<M> ? M : never }[ModelName];

type OptionalArgs = "findFirst" | "findFirstOrThrow" | "findMany" | "count" | "deleteMany";
/**
 * Prisma's, without findUnique: Prisma joins those that are called in one moment, by whomever, into a batch that may need a transaction.
 * findFirst with the same key is the same statement.
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

/** Leaves out the tenant, also inside of the unique keys that begin with it. */
type WithoutTenant<W> = W extends readonly (infer Each)[]
  ? WithoutTenant<Each>[]
  : W extends object
    ? { [K in keyof W as K extends "tenantId" ? never : K]: K extends `tenantId_${string}` ? Omit<NonNullable<W[K]>, "tenantId"> : W[K] }
    : W;
/** Only a key that begins with the tenant tells an upsert whose row it meets. */
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
 * another tenant's row finds nothing. Relations may be read along, since they lead to rows of the same tenant. They may not be written along:
 * write each row by itself, through its own model.
 */
export type TenantClient = {
  readonly [M in TenantModelName as Uncapitalize<M>]: {
    readonly [O in OperationName]: Run<Delegate<M>, O, Scoped<Prisma.Args<Delegate<M>, O>, O>>;
  };
};

/** Reads and writes whatever it is told to: for what comes before a tenant is known, for sweeps, and for the operator. */
export type SystemClient = {
  readonly [M in ModelName as Uncapitalize<M>]: { readonly [O in OperationName]: Run<Delegate<M>, O, Prisma.Args<Delegate<M>, O>> };
};

/** Prisma, outside or inside of a transaction. */
export interface Clients {
  for(scope: SystemScope): TenantClient;
  readonly system: SystemClient;
}

/** One transaction for both kinds of statement; both see each other's uncommitted rows. */
export interface Tx extends SqlTx, Clients {}
