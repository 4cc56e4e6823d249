// Calls a room's handlers as the kernel does: input parsed and output checked by the contract, without doors.
import type { z } from "zod";
import type { Group, Operation, Role, TenantId } from "../../protocol/index.ts";
import { AppError } from "../../server/core/errors.ts";
import type { Call, Handlers, Reply } from "../../server/core/feature.ts";
import type { OpenScope, Principal, TenantFacts, TenantScope } from "../../server/core/scope.ts";

export const anyone = (ip = "192.0.2.1"): OpenScope => ({ tenantId: null, tenant: null, principal: null, requestId: "req_test", ip, traceparent: null });

export const userOf = (userId: string, email: string | null = null, role: Role | null = null): Principal => ({ kind: "user", userId, email, role });

/** A caller inside a tenant. */
export const inside = (tenantId: TenantId, principal: Principal): TenantScope => {
  const tenant: TenantFacts = { tenantId, slug: "s", plan: "starter", status: "active", limitOverrides: {}, rateLimitOverrides: {} };
  return { ...anyone(), tenantId, tenant, principal };
};

type Run<Op extends Operation> = (scope: OpenScope, input: z.input<Op["input"]>, reply?: Reply) => Promise<z.output<Op["output"]>>;
export type Room<G extends Group> = { readonly [N in keyof G["operations"]]: Run<G["operations"][N]> };

/** One function per operation: (scope, input) → checked output. A code that the operation does not declare is the kernel's or a mistake. */
export const callable = <G extends Group>(group: G, handlers: Handlers<G>): Room<G> => {
  const run =
    (name: string, operation: Operation) =>
    async (scope: OpenScope, input: unknown, reply: Reply = { headers: {} }): Promise<unknown> => {
      const call: Call = {
        scope: scope as never,
        reply,
        signal: new AbortController().signal,
        idempotencyKey: null,
        fail: (code, details, options) => new AppError(code, { ...options, details }),
      };
      const handler = handlers[name as keyof Handlers<G>] as (call: Call, input: unknown) => Promise<unknown>;
      return operation.output.parse(await handler(call, operation.input.parse(input)));
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
