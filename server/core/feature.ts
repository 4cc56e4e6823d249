// How a room answers its part of the contract: one handler per operation, typed by it.
import type { z } from "zod";
import type { Group, Operation } from "../../protocol/index.ts";
import type { AppError, AppErrorOptions } from "./errors.ts";
import type { OpenScope, TenantScope } from "./scope.ts";

/** What a handler may say beside its result. */
export interface Reply {
  /** Another success status than the contract's, for records that carry their own (health). */
  status?: number;
  /** True when the answer repeats an earlier one under the same idempotency key. */
  replayed?: boolean;
  readonly headers: Record<string, string>;
}

export type ScopeOf<Op extends Operation> = Op["tenancy"] extends "tenant" ? TenantScope : OpenScope;

export interface Call<Op extends Operation = Operation> {
  readonly scope: ScopeOf<Op>;
  /** Throw what it returns; only codes that the operation declares fit. */
  readonly fail: (code: Op["errors"][number], details?: AppErrorOptions["details"], options?: Omit<AppErrorOptions, "details">) => AppError;
  readonly reply: Reply;
  /** Fires when the caller is gone or the call's time is over. */
  readonly signal: AbortSignal;
  /** The Idempotency-Key, for operations that keep it with their row (`idempotency: "own"`). */
  readonly idempotencyKey: string | null;
}

type Result<Op extends Operation> = Op["kind"] extends "subscription" ? AsyncIterable<z.input<Op["output"]>> : Promise<z.input<Op["output"]>>;
export type Handler<Op extends Operation> = (call: Call<Op>, input: z.output<Op["input"]>) => Result<Op>;
export type Handlers<G extends Group> = { readonly [N in keyof G["operations"]]: Handler<G["operations"][N]> };

/** Names the group for the compiler; the handlers are returned as they are. */
export const implement = <G extends Group>(_group: G, handlers: Handlers<G>): Handlers<G> => handlers;
