// Security events and alerts as people read and answer them.
import { type Page, SecurityAlert, SecurityEvent, type SecurityEventType, type SecurityMetrics, type Severity } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import { newId } from "../../core/ids.ts";
import { createLongListing } from "../../core/rows/listing.ts";
import { type RowOf, recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";

interface EventRow {
  readonly eventId: string;
  readonly type: string;
  readonly severity: string;
  readonly entityType: string;
  readonly entityId: string;
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly count: number;
  readonly ipAddress: string | null;
  readonly reason: string | null;
  readonly operation: string | null;
}

const toEvent = ({ eventId, type, severity, lastAt, firstAt, entityType, entityId, count, ipAddress, reason, operation }: EventRow): SecurityEvent =>
  recordOf(SecurityEvent, {
    id: eventId,
    type,
    severity,
    timestamp: lastAt,
    details: { entityType, entityId, count, firstAt: firstAt.toISOString(), ipAddress, reason, operation },
  });

const listEvents = createLongListing("security.events", { timestamp: { kind: "time", column: "lastAt" } }, { column: "eventId", kind: "text" });
type EventsQuery = Parameters<typeof listEvents>[0] & {
  readonly type?: SecurityEventType | undefined;
  readonly severity?: Severity | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly entityId?: string | undefined;
};

export const pageOfEvents = (db: Clients, scope: SystemScope, query: EventsQuery): Promise<Page<SecurityEvent>> => {
  const { securityEvent } = db.for(scope);
  const { type, severity, from, to, entityId } = query;
  const within =
    from === undefined && to === undefined ? {} : { lastAt: { ...(from === undefined ? {} : { gte: from }), ...(to === undefined ? {} : { lt: to }) } };
  const where = {
    ...within,
    ...(type === undefined ? {} : { type }),
    ...(severity === undefined ? {} : { severity }),
    ...(entityId === undefined ? {} : { entityId }),
  };
  return listEvents(query, {
    owner: scope.tenantId,
    walk: (asked) => securityEvent.findMany({ ...asked, where: { ...within, AND: asked.where }, select: { lastAt: true, eventId: true } }),
    rows: (asked) => securityEvent.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: (asked) => securityEvent.count({ where: { ...where, AND: asked.where } }),
    record: toEvent,
  });
};

type AlertRow = Omit<RowOf<typeof SecurityAlert>, "id"> & { readonly alertId: string };
const toAlert = ({ alertId, ...row }: AlertRow): SecurityAlert => recordOf(SecurityAlert, { ...row, id: alertId });

const listAlerts = createLongListing("security.alerts", { createdAt: { kind: "time" }, lastEventAt: { kind: "time" } }, { column: "alertId", kind: "text" });
type AlertsQuery = Parameters<typeof listAlerts>[0] & {
  readonly type?: SecurityEventType | undefined;
  readonly severity?: Severity | undefined;
  readonly status?: SecurityAlert["status"] | undefined;
};

export const pageOfSecurityAlerts = (db: Clients, scope: SystemScope, query: AlertsQuery): Promise<Page<SecurityAlert>> => {
  const { securityAlert } = db.for(scope);
  const { type, severity, status } = query;
  const where = { ...(type === undefined ? {} : { type }), ...(severity === undefined ? {} : { severity }), ...(status === undefined ? {} : { status }) };
  return listAlerts(query, {
    owner: scope.tenantId,
    walk: (asked) => securityAlert.findMany({ ...asked, where: asked.where, select: { createdAt: true, lastEventAt: true, alertId: true } }),
    rows: (asked) => securityAlert.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: (asked) => securityAlert.count({ where: { ...where, AND: asked.where } }),
    record: toAlert,
  });
};

/** Open ones, the newest first. */
export const findUnansweredAlerts = async (db: Clients, scope: SystemScope, take: number) => {
  const rows = await db.for(scope).securityAlert.findMany({ where: { status: "open" }, orderBy: [{ createdAt: "desc" }, { alertId: "desc" }], take });
  return rows.map((row) => ({ ...row, severity: row.severity as Severity })); // as: only this feature writes the column
};

export const findSecurityAlert = async (db: Clients, scope: SystemScope, alertId: string): Promise<SecurityAlert | null> => {
  const row = await db.for(scope).securityAlert.findFirst({ where: { alertId } });
  return row === null ? null : toAlert(row);
};

type AlertChange = Partial<{
  readonly status: SecurityAlert["status"];
  readonly acknowledgedAt: Date;
  readonly acknowledgedBy: string;
  readonly resolvedAt: Date;
  readonly resolvedBy: string;
  readonly resolution: NonNullable<SecurityAlert["resolution"]>;
  readonly note: string | null;
}>;

/** Null when the alert is in none of these states. */
export const changeAlert = async (
  db: Clients,
  scope: SystemScope,
  { alertId, from }: { readonly alertId: string; readonly from: readonly SecurityAlert["status"][] },
  change: AlertChange,
): Promise<SecurityAlert | null> => {
  const [row] = await db.for(scope).securityAlert.updateManyAndReturn({ where: { alertId, status: { in: [...from] } }, data: change });
  return row === undefined ? null : toAlert(row);
};

/** What an alert is about. */
export interface AlertKey {
  readonly ruleId: string;
  readonly entityType: string;
  readonly entityId: string;
}

/** The newest about this, whatever its state. */
export const findLastAlert = async (db: Clients, scope: SystemScope, { ruleId, entityType, entityId }: AlertKey): Promise<SecurityAlert | null> => {
  const row = await db.for(scope).securityAlert.findFirst({ where: { ruleId, entityType, entityId }, orderBy: { createdAt: "desc" } });
  return row === null ? null : toAlert(row);
};

export const countUnresolved = (db: Clients, scope: SystemScope, ruleId: string): Promise<number> =>
  db.for(scope).securityAlert.count({ where: { ruleId, status: { not: "resolved" } } });

type NewAlert = AlertKey & Pick<SecurityAlert, "type" | "severity" | "count" | "previousAlertId"> & { readonly lastEventAt: Date };
export const insertAlert = async (db: Clients, scope: SystemScope, alert: NewAlert): Promise<SecurityAlert> =>
  toAlert(await db.for(scope).securityAlert.create({ data: { ...alert, alertId: newId("sal") } }));

export const renewAlert = async (
  db: Clients,
  scope: SystemScope,
  alertId: string,
  seen: { readonly count: number; readonly lastEventAt: Date },
): Promise<void> => {
  await db.for(scope).securityAlert.updateMany({ where: { alertId }, data: seen });
};

export const readMetrics = async (db: Clients, scope: SystemScope, windowHours: number, now: Date): Promise<Omit<SecurityMetrics, "blockedEntities">> => {
  const { securityEvent, securityAlert } = db.for(scope);
  const since = secondsFromNow(-windowHours * 3_600, now);
  const [sums, openAlerts] = await Promise.all([
    securityEvent.groupBy({ by: ["type"], where: { lastAt: { gt: since } }, _sum: { count: true }, orderBy: { type: "asc" } }),
    securityAlert.count({ where: { status: { not: "resolved" } } }),
  ]);
  // as: nothing else is written; a later release may know more types.
  const byType = sums.map(({ type, _sum }) => ({ type: type as SecurityEventType, count: _sum?.count ?? 0 }));
  return { totalEvents: byType.reduce((total, { count }) => total + count, 0), openAlerts, windowHours, byType };
};
