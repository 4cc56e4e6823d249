// The small language the contract is written in. An operation is declared once; REST, tRPC, OpenAPI and the client's types are read off it.
import type { z } from "zod";
import type { ErrorCode } from "./errors.ts";
import type { EventType } from "./event.ts";
import type { LimitClass } from "./limits.ts";
import type { Permission } from "./permissions.ts";

export type Kind = "query" | "mutation" | "subscription";
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
/** Path below /v1. Names in braces are fields of the input. */
export type Rest = `${Method} /${string}`;

/** The credential kinds a call may carry. `public` asks for none (a one-time token may be in the body). */
export type Auth = "public" | "user" | "apiKey" | "agent";

/** `self`: the caller acts on what is its own (its account, its own device); no role decides. `platform`: the caller runs the installation. */
export type Need = Permission | "self" | "public" | "platform";

/** Where the tenant comes from: the credential, or nowhere because the operation stands outside of tenants. */
export type Tenancy = "tenant" | "none";

/** `key`: an Idempotency-Key is honoured, and its answer commits with the effect; `own`: the feature keeps the key with its row; `none`: ignored. */
export type Idempotency = "key" | "own" | "none";

export interface Deprecated {
  /** ISO dates. Sunset lies at least six months after since. */
  readonly since: string;
  readonly sunset: string;
  /** Path of the operation to use instead. */
  readonly successor?: string;
}

export interface Operation<
  K extends Kind = Kind,
  I extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
  E extends ErrorCode = ErrorCode,
  T extends Tenancy = Tenancy,
  M extends Idempotency = Idempotency,
> {
  readonly kind: K;
  /** First line of the OpenAPI text. */
  readonly summary: string;
  readonly description?: string;
  /** The first is canonical, the others are aliases. None: reachable over tRPC only. */
  readonly rest: readonly Rest[];
  readonly auth: readonly Auth[];
  readonly permission: Need;
  readonly tenancy: T;
  readonly limit: LimitClass;
  readonly status: 200 | 201 | 204;
  /** Health: this status carries the record too, when what it tells of is not well. */
  readonly unwellStatus?: 503;
  /** Response headers beside those of every answer: name and meaning. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
  readonly input: I;
  readonly output: O;
  /** Codes beyond the common set that the handler may throw. */
  readonly errors: readonly E[];
  /** Input fields that travel in the query string although the method has a body. */
  readonly query: readonly string[];
  /** Input fields that travel in headers, with the headers' names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Lists: `page` and `offset` name the default style; `plain` is a bounded list without pages. */
  readonly list?: "page" | "offset" | "plain";
  /** Created things: the path of the new resource below /v1; its last field is hoisted as `id`. */
  readonly location?: `/${string}`;
  /** The record's fields stand at top level too, beside `data`. */
  readonly flat: boolean;
  readonly idempotency: M;
  /**
   * What a second use of an agent's signature is worth. `repeatable`: the same again, at the same method and path. `once`: nothing, for
   * changes and for answers that carry a secret.
   */
  readonly replay: "repeatable" | "once";
  /** Largest body, in bytes. */
  readonly maxBodyBytes: number;
  /** How long the input's `wait` may hold the call: the time a call may take grows by what it asks for. */
  readonly maxWaitSeconds?: number;
  readonly deprecated?: Deprecated;
}

type Defaulted = "rest" | "errors" | "limit" | "status" | "flat" | "idempotency" | "replay" | "query" | "headers" | "maxBodyBytes" | "tenancy";
type Spec<I extends z.ZodType, O extends z.ZodType, E extends ErrorCode, T extends Tenancy, M extends Idempotency> = Omit<
  Operation<Kind, I, O, E, T, M>,
  "kind" | Defaulted
> &
  Partial<Pick<Operation<Kind, I, O, E, T, M>, Defaulted>>;

const define =
  <K extends Kind>(kind: K) =>
  <
    I extends z.ZodType,
    O extends z.ZodType,
    const E extends ErrorCode = never,
    const T extends Tenancy = "tenant",
    const M extends Idempotency = K extends "mutation" ? "key" : "none",
  >(
    spec: Spec<I, O, E, T, M>,
  ): Operation<K, I, O, NoInfer<E>, NoInfer<T>, NoInfer<M>> =>
    Object.freeze({
      rest: [],
      errors: [],
      limit: "standard",
      status: 200,
      flat: false,
      query: [],
      headers: {},
      maxBodyBytes: 1_048_576,
      tenancy: "tenant" as T,
      idempotency: kind === "mutation" ? "key" : "none",
      replay: kind === "mutation" ? "once" : "repeatable",
      ...spec,
      kind,
    }) as Operation<K, I, O, NoInfer<E>, NoInfer<T>, NoInfer<M>>;

export const query = define("query");
export const mutation = define("mutation");
/** Output is the schema of one item of the stream. */
export const subscription = define("subscription");

export interface Group {
  readonly tag: string;
  readonly operations: Readonly<Record<string, Operation>>;
  readonly events: Readonly<Record<string, EventType>>;
}

export const group = <
  const O extends Readonly<Record<string, Operation>>,
  const V extends Readonly<Record<string, EventType>> = Record<never, EventType>,
>(spec: {
  readonly tag: string;
  readonly operations: O;
  readonly events?: V;
}) => Object.freeze({ events: {} as V, ...spec });
