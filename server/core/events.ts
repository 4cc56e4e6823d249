// How rooms tell what has happened: an outbox row in the transaction of the cause, or a passing hint for live views.
import type { z } from "zod";
import type { EventType } from "../../protocol/index.ts";
import type { SystemScope } from "./scope.ts";

/** The part of a transaction that an event needs. */
export interface SqlTx {
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Where there is such a thing: what was given last need not be waited for before the commit is. */
  defer?(work: Promise<unknown>): void;
}

/** A committed event on its way to those who listen. */
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

export interface EventToEmit<E extends EventType = EventType> {
  readonly scope: SystemScope;
  readonly event: E;
  /** Id of the thing that it happened to. */
  readonly subjectId: string;
  readonly data: z.input<E["schema"]>;
}

/** Writes durable events with their cause; many in one statement. Delivered at least once, after commit, in order of position. */
export type Emit = (tx: SqlTx, events: readonly EventToEmit[]) => Promise<void>;

/** Shows a passing event to live views. Call it after commit; it may be lost. */
export type Hint = (event: EventToEmit) => void;
