// The handlers of a feature: one per operation of its group, typed by the contract.
import type { z } from "zod";
import type { Group, Operation } from "../../protocol/index.ts";
import type { Tx } from "./database.ts";
import type { AppError, AppErrorOptions } from "./errors.ts";
import type { CallOrigin } from "./ports/in-process.ts";
import type { OpenScope, TenantScope } from "./scope.ts";

/** What a handler may set beside its result. */
export interface Reply {
  /** Another success status than the contract's, for records that carry their own (health). */
  status?: number;
  /** True when the answer repeats an earlier one under the same idempotency key. */
  replayed?: boolean;
  readonly headers: Record<string, string>;
  /** Values of Set-Cookie. */
  cookies?: readonly string[];
}

export type ScopeOf<Op extends Operation> = Op["tenancy"] extends "tenant" ? TenantScope : OpenScope;

export interface Call<Op extends Operation = Operation> {
  readonly scope: ScopeOf<Op>;
  /** Returns an error to throw. Takes only codes that the operation declares. */
  readonly fail: (code: Op["errors"][number], details?: AppErrorOptions["details"], options?: Omit<AppErrorOptions, "details">) => AppError;
  readonly reply: Reply;
  /** Fires when the caller is gone or the call times out. */
  readonly signal: AbortSignal;
  /** The Idempotency-Key, for operations that keep it with their row (`idempotency: "own"`). */
  readonly idempotencyKey: string | null;
  /** The request that carries the call, for what makes further calls for the same caller; null if the gateway itself makes the call. */
  readonly origin: CallOrigin | null;
}

declare const byCommit: unique symbol;
/** The result of an effect that PostgreSQL has confirmed. Only `commit` makes one, so a keyed handler that bypasses it does not compile. */
export interface Committed<T> {
  readonly result: T;
  readonly [byCommit]: true;
}

/**
 * Registers a hint, which may get lost: drop a cache entry, wake a session, update a live view. It runs after the commit, and also when the answer to
 * COMMIT is lost. Write a row or a durable event instead of anything that must not get lost.
 */
export type Afterwards = (hint: () => void) => void;

/**
 * The one transaction of a keyed operation. It writes the effect and its events and returns the operation's result; under an Idempotency-Key that
 * answer commits with them, so a repeat finds both or neither. Three rules:
 * - All that the operation changes, it changes through `tx`. An operation that changes no row (a hint to a node) still commits its answer here and
 *   registers the hint with `afterwards`.
 * - The effect may run again after a deadlock, and it holds a connection: it waits for nothing but `tx`.
 * - An error that it throws undoes everything. Returning an AppError refuses the call and commits what the effect wrote.
 */
export type Commit<T> = (effect: (tx: Tx, afterwards: Afterwards) => Promise<T | AppError>) => Promise<Committed<T>>;

/** The call of an operation with `idempotency: "key"`. */
export interface KeyedCall<Op extends Operation = Operation> extends Call<Op> {
  readonly commit: Commit<z.input<Op["output"]>>;
}

type Result<Op extends Operation> = Op["kind"] extends "subscription" ? AsyncIterable<z.input<Op["output"]>> : Promise<z.input<Op["output"]>>;
export type Handler<Op extends Operation> = Op["idempotency"] extends "key"
  ? (call: KeyedCall<Op>, input: z.output<Op["input"]>) => Promise<Committed<z.input<Op["output"]>>>
  : (call: Call<Op>, input: z.output<Op["input"]>) => Result<Op>;
export type Handlers<G extends Group> = { readonly [N in keyof G["operations"]]: Handler<G["operations"][N]> };

/** Checks the handlers against their group, in the compiler only. */
export const implement = <G extends Group>(_group: G, handlers: Handlers<G>): Handlers<G> => handlers;
