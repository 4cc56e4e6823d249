// The language of the contract. Each operation is declared once; REST, tRPC, OpenAPI and the client's types are derived from it.
import { z } from "zod";
import type { CommandType } from "./command-type.ts";
import type { ErrorCode } from "./errors.ts";
import type { EventType } from "./event.ts";
import type { LimitClass } from "./limits.ts";
import type { Permission } from "./permissions.ts";

export type Kind = "query" | "mutation" | "subscription";
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
/** Method and path below /v1. Names in braces are fields of the input. */
export type Rest = `${Method} /${string}`;

/** The kinds of credential that an operation accepts. `public` needs none (the body may contain a one-time token). */
export type Auth = "public" | "user" | "apiKey" | "agent";

/** `self`: callers act on their own account or device, whatever their role. `platform`: only administrators of the installation. */
export type Need = Permission | "self" | "public" | "platform";

/** `tenant`: the credential names the tenant. `optional`: it may name none, and a person's usual tenant counts. `none`: the operation concerns no tenant. */
export type Tenancy = "tenant" | "optional" | "none";

/** `key`: the gateway honors an Idempotency-Key and commits the answer with the effect; `own`: the feature stores the key with its row; `none`: ignored. */
export type Idempotency = "key" | "own" | "none";

/**
 * What a call counts against its caller's rate limits: one for each `per` entries of this array of the input, begun ones too, and `otherwise`
 * if the array is missing.
 */
export interface Weight {
  readonly field: string;
  readonly per: number;
  readonly otherwise: number;
}

/** A REST answer that is no envelope but text of a media type of its own. Over tRPC the text is the result; a text in pieces has no tRPC form. */
export interface Plain {
  /** Media type, with its charset. */
  readonly type: string;
  /** Clients save the answer as a file of this name. */
  readonly filename?: string;
  /** The output is `Pieces`, sent as they come. The connection breaks off when they fail, so that nobody takes a part for the whole. */
  readonly pieces?: true;
}

/** Text or bytes of any length, in pieces that each fit into memory; `output` of an operation with `plain.pieces`. */
export const Pieces = z.union([
  z.string(),
  z.custom<AsyncIterable<string | Uint8Array>>((value) => typeof value === "object" && value !== null && Symbol.asyncIterator in value),
]);

export interface Deprecated {
  /** ISO dates. `sunset` must be at least six months after `since`. */
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
  /** The first is canonical, the others are aliases. Empty: available over tRPC only. */
  readonly rest: readonly Rest[];
  readonly auth: readonly Auth[];
  readonly permission: Need;
  readonly tenancy: T;
  /** A change that is allowed although the tenant is suspended or about to be deleted, so that it can become active again. */
  readonly whileSuspended?: true;
  /** What an administrator may do in a member's name although it is the member's own, or a mutation that changes nothing of the tenant's. */
  readonly whileImpersonated?: true;
  readonly limit: LimitClass;
  /** Absent: a call counts as one. */
  readonly weight?: Weight;
  /** 303 sends a browser on: over REST the output's `location` becomes the header, without a body. */
  readonly status: 200 | 201 | 204 | 303;
  /** Health operations answer with this status, and the same record, when the service is unhealthy. */
  readonly unwellStatus?: 503;
  /** Additional response headers: name and meaning. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
  readonly input: I;
  readonly output: O;
  /** Error codes that the handler may throw, besides the common set. */
  readonly errors: readonly E[];
  /** Input fields that REST takes from the query string although the method has a body. */
  readonly query: readonly string[];
  /** Input fields that REST takes from headers, with the headers' names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Input field that REST fills with the unparsed body, for bodies that are signed. */
  readonly rawBody?: string;
  /** Its media type; default `application/json`. The field has the body of `application/gzip` in base64. */
  readonly rawType?: "application/x-ndjson" | "application/gzip";
  /**
   * REST takes an OTLP export request, in JSON or protobuf and perhaps gzip'd, whose JSON form is the input, and answers in the same encoding without
   * an envelope. The operation itself decides about values that PostgreSQL cannot store.
   */
  readonly otlp?: true;
  /** Lists: the default style of paging; `cursor` knows no other and counts nothing; `plain` is a bounded list without pages. */
  readonly list?: "page" | "offset" | "cursor" | "plain";
  /** Creations: the path of the new resource below /v1. The response repeats the path's last field as `id`. */
  readonly location?: `/${string}`;
  /** REST answers with the result itself, a text, without an envelope. */
  readonly plain?: Plain;
  /** The response repeats the record's fields at top level, beside `data`. */
  readonly flat: boolean;
  readonly idempotency: M;
  /**
   * Whether an agent may use a signature again. `repeatable`: for the same method and path. `once`: never; for changes and for responses
   * that contain a secret.
   */
  readonly replay: "repeatable" | "once";
  /** Maximum size of the body, in bytes. */
  readonly maxBodyBytes: number;
  /** Maximum of the input's `wait` or `timeout`, in seconds. The call's time limit grows by the wait that it asks for. */
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
/** `output` is the schema of one item of the stream. */
export const subscription = define("subscription");

export interface Group {
  readonly tag: string;
  readonly operations: Readonly<Record<string, Operation>>;
  readonly events: Readonly<Record<string, EventType>>;
  /** Records by the names that OpenAPI and clients call them. */
  readonly records?: Readonly<Record<string, z.ZodType>>;
  /** Commands that the group's feature orders for devices. */
  readonly commands: Readonly<Record<string, CommandType>>;
}

export const group = <
  const O extends Readonly<Record<string, Operation>>,
  const V extends Readonly<Record<string, EventType>> = Record<never, EventType>,
  const C extends Readonly<Record<string, CommandType>> = Record<never, CommandType>,
>(spec: {
  readonly tag: string;
  readonly operations: O;
  readonly events?: V;
  readonly commands?: C;
  readonly records?: Readonly<Record<string, z.ZodType>>;
}) => Object.freeze({ events: {} as V, commands: {} as C, ...spec });
