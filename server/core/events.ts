// Events of features: a durable one is an outbox row in the transaction of its cause, a passing one is a hint for live views.
import type { z } from "zod";
import type { Contract, TenantId } from "../../protocol/index.ts";
import type { SystemScope } from "./scope.ts";
import type { Statement } from "./statements.ts";

/** The part of a transaction that an event needs. */
export interface SqlTx {
  query<Row>(text: Statement<Row> | string, values?: readonly unknown[]): Promise<Row[]>;
  /** Sends the COMMIT with this work instead of after its answer. Only some transactions can. */
  defer?(work: Promise<unknown>): void;
}

/** A committed event on its way to its subscribers. */
export interface DispatchedEvent {
  readonly eventId: string;
  readonly position: number;
  readonly sequence: number;
  readonly tenantId: string;
  readonly type: string;
  readonly subjectId: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly createdAt: Date;
  readonly requestId: string | null;
  readonly traceparent: string | null;
}

type ValueOf<T> = T[keyof T];
/** An event that a group of the contract declares. */
export type DeclaredEvent = ValueOf<{ readonly [G in keyof Contract]: ValueOf<Contract[G]["events"]> }>;
export type DurableEvent = Extract<DeclaredEvent, { readonly durable: true }>;
export type PassingEvent = Extract<DeclaredEvent, { readonly durable: false }>;

declare const byHappened: unique symbol;
/** Only `happened` makes one, so its payload always fits its event. */
export interface Happened<E extends DeclaredEvent = DeclaredEvent> {
  readonly scope: SystemScope;
  readonly event: E;
  /** The id of the record that the event is about. */
  readonly subjectId: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** For an event that somebody has been told of already; by default it gets a new id. */
  readonly eventId?: string;
  readonly [byHappened]: true;
}

/** `happened(scope, contract.devices.events.deleted, deviceId, { ... })`. The compiler checks the payload against the event. */
export const happened = <E extends DeclaredEvent>(scope: SystemScope, event: E, subjectId: string, data: z.input<E["schema"]>): Happened<E> =>
  ({ scope, event, subjectId, data }) as unknown as Happened<E>;

/** Writes durable events in the transaction of their cause. The outbox delivers them at least once, after commit, in order of position. */
export type Emit = (tx: SqlTx, events: readonly Happened<DurableEvent>[]) => Promise<void>;

/** Shows a passing event to live views, and makes it only if somebody watches the tenant here. Call it after commit; it may be lost. */
export type Hint = (tenantId: TenantId, make: () => Happened<PassingEvent>) => void;
