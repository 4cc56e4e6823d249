// The row of a durable event, as the outbox and the live feed read it.
import type { DispatchedEvent } from "./events.ts";

export interface EventRow {
  readonly event_id: string;
  readonly position: number;
  readonly sequence: number | null;
  readonly tenant_id: string;
  readonly type: string;
  readonly subject_id: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly created_at: Date;
  readonly request_id: string | null;
  readonly traceparent: string | null;
}

export const EVENT_COLUMNS = "event_id, position, sequence, tenant_id, type, subject_id, data, created_at, request_id, traceparent";

export const toEvent = (row: EventRow): DispatchedEvent => ({
  eventId: row.event_id,
  position: row.position,
  sequence: row.sequence ?? 0,
  tenantId: row.tenant_id,
  type: row.type,
  subjectId: row.subject_id,
  data: row.data,
  createdAt: row.created_at,
  requestId: row.request_id,
  traceparent: row.traceparent,
});
