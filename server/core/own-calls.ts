// The calls that background work makes of features' handlers, as the person or key that ordered it.
import { type Contract, contract, type Operation } from "../../protocol/index.ts";
import type { Tx } from "./database.ts";
import { AppError, isAppError } from "./errors.ts";
import type { Afterwards, Call, Committed, KeyedCall } from "./feature.ts";
import type { TenantScope } from "./scope.ts";

/** The name of an operation with its group, such as `fleets.create`. */
export type NamedOperation = { readonly [G in keyof Contract]: `${G}.${Extract<keyof Contract[G]["operations"], string>}` }[keyof Contract];
export const operationNamed = (named: NamedOperation): Operation => {
  const [group, name] = named.split(".") as [keyof Contract, string]; // as: its type
  return (contract[group].operations as Readonly<Record<string, Operation>>)[name] as Operation; // as: its type
};

const fail: Call["fail"] = (code, details, options) => new AppError(code, { details, ...options });

/** A call that only reads. */
export const readCall = (scope: TenantScope) => ({
  scope,
  fail,
  reply: { headers: {} },
  signal: new AbortController().signal,
  idempotencyKey: null,
  origin: null,
});

/** A call whose transaction is the step's. */
export const callIn = (tx: Tx, scope: TenantScope, afterwards: Afterwards): KeyedCall => ({
  ...readCall(scope),
  commit: async (effect) => {
    const result = await effect(tx, afterwards);
    if (isAppError(result)) throw result;
    return { result } as Committed<never>; // as: the step commits it
  },
});
