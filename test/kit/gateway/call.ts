// Calls a feature's handlers as the pipeline does: parses the input and checks the output by the contract, without any transport.
import type { z } from "zod";
import type { Group, Operation, Role, TenantId } from "../../../protocol/index.ts";
import { accessOf, NO_ACCESS } from "../../../server/core/access.ts";
import type { Tx } from "../../../server/core/database.ts";
import { AppError, isAppError } from "../../../server/core/errors.ts";
import type { Commit, Committed, Handlers, KeyedCall, Reply } from "../../../server/core/feature.ts";
import type { AuditTrail } from "../../../server/core/ports/audit.ts";
import type { OpenScope, Principal, TenantFacts, TenantScope } from "../../../server/core/scope.ts";
import { duplicateError } from "../../../server/platform/database/unique-indexes.ts";

export const anyone = (ip = "192.0.2.1"): OpenScope => ({ tenantId: null, tenant: null, principal: null, requestId: "req_test", ip, traceparent: null });

export const userOf = (userId: string, email: string | null = null, role: Role | null = null): Principal => ({
  kind: "user",
  userId,
  email,
  ...(role === null ? NO_ACCESS : accessOf(role)),
});

/** For a pipeline whose transactions nobody records. */
export const noAudit: AuditTrail = { begin: () => undefined, append: async () => undefined };

/** A caller inside a tenant. */
export const inside = (tenantId: TenantId, principal: Principal): TenantScope => {
  const tenant: TenantFacts = { tenantId, slug: "s", plan: "starter", status: "active", limitOverrides: {}, rateLimitOverrides: {} };
  return { ...anyone(), tenantId, tenant, principal };
};

type Run<Op extends Operation> = (scope: OpenScope, input: z.input<Op["input"]>, reply?: Reply) => Promise<z.output<Op["output"]>>;
export type CallableGroup<G extends Group> = { readonly [N in keyof G["operations"]]: Run<G["operations"][N]> };

export interface Database {
  tx<T>(run: (tx: Tx) => Promise<T>): Promise<T>;
}

/** The transaction of a keyed operation, called without a key. */
export const committing =
  (db: Database | undefined): Commit<unknown> =>
  async (effect) => {
    if (db === undefined) throw new Error("a keyed operation needs a database to commit to");
    const hints: (() => void)[] = [];
    const result = await db.tx((tx) => effect(tx, (hint) => void hints.push(hint)));
    for (const hint of hints) hint();
    if (isAppError(result)) throw result;
    return { result } as Committed<unknown>;
  };

/** A handler's result, checked by the contract. */
export const resultOf = (operation: Operation, given: unknown): unknown =>
  operation.output.parse(operation.idempotency === "key" ? (given as Committed<unknown>).result : given);

/** One function per operation: (scope, input) → checked output. A code that the operation does not declare comes from the pipeline or is a mistake. */
export const callable = <G extends Group>(group: G, handlers: Handlers<G>, db?: Database): CallableGroup<G> => {
  const run =
    (name: string, operation: Operation) =>
    async (scope: OpenScope, input: unknown, reply: Reply = { headers: {} }): Promise<unknown> => {
      const call: KeyedCall = {
        scope: scope as never,
        reply,
        signal: new AbortController().signal,
        idempotencyKey: null,
        origin: null,
        fail: (code, details, options) => new AppError(code, { ...options, details }),
        commit: committing(db),
      };
      const handler = handlers[name as keyof Handlers<G>] as (call: KeyedCall, input: unknown) => Promise<unknown>;
      const parsed = operation.input.parse(input);
      try {
        return resultOf(operation, await handler(call, parsed));
      } catch (error) {
        throw isAppError(error) ? error : (duplicateError(error, parsed) ?? error);
      }
    };
  return Object.fromEntries(Object.entries(group.operations).map(([name, operation]) => [name, run(name, operation)])) as never;
};

/** The code, status and details of an expected failure. */
export const failureOf = async (
  work: Promise<unknown>,
): Promise<{ readonly code: string; readonly status: number; readonly details: Readonly<Record<string, unknown>> | undefined }> => {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (error instanceof AppError) return { code: error.code, status: error.status, details: error.details };
  throw new Error("expected an AppError", { cause: error ?? "no error at all" });
};
