// Rows of alerts as their readers see them. A limited caller sees the alerts about some of the caller's devices, and counts no other target.
import { Alert, type AlertCounts, AlertTarget, type Page } from "../../../../protocol/index.ts";
import { isLimited } from "../../../core/access.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing, createLongListing } from "../../../core/rows/listing.ts";
import { given, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = (db: Clients, scope: SystemScope, alertId: string) => db.for(scope).alert.findFirst({ where: { alertId } });

interface Counts {
  readonly targets: number;
  readonly active: number;
}
interface First {
  readonly name: string | null;
  readonly deviceId: string | null;
}

const FIGURE = new Intl.NumberFormat("en", { maximumFractionDigits: 2, useGrouping: false });
const summaryOf = ({ type, value }: Row, { targets, active }: Counts): string =>
  targets > 1 ? `${active} of ${targets} are still affected` : `${type} is ${FIGURE.format(value)}`;

const toAlert = (row: Row, counts: Counts, first: First | undefined): Alert => {
  const target =
    first === undefined ? null : { kind: first.deviceId === null ? ("resource" as const) : ("device" as const), id: row.targetId, name: first.name };
  const what = counts.targets === 1 && target !== null ? (target.name ?? target.id) : `${counts.targets} ${target?.kind === "resource" ? "things" : "devices"}`;
  return recordOf(Alert, {
    ...row,
    target,
    targetCount: counts.targets,
    activeCount: counts.active,
    fingerprint: `${row.ruleId}:${target === null ? "" : row.targetId}`,
    value: target === null ? 0 : row.value,
    title: `${row.ruleName}: ${what}`,
    summary: summaryOf(row, counts),
  });
};

const NONE: Counts = { targets: 0, active: 0 };

/** What of these alerts the caller sees. */
const shown = async (db: Clients, scope: SystemScope, rows: readonly Row[]): Promise<Alert[]> => {
  if (rows.length === 0) return [];
  const { alertTarget } = db.for(scope);
  const OR = rows.map(({ alertId, targetId }) => ({ alertId, targetId }));
  const firsts = await alertTarget.findMany({ where: { OR }, select: { alertId: true, name: true, deviceId: true } });
  const firstOf = new Map(firsts.map((first) => [first.alertId, first]));
  if (!isLimited(scope)) return rows.map((row) => toAlert(row, { targets: row.targetCount, active: row.activeCount }, firstOf.get(row.alertId)));
  const groups = await alertTarget.groupBy({
    by: ["alertId", "active"],
    where: { alertId: { in: rows.map(({ alertId }) => alertId) } },
    _count: { targetId: true },
  });
  const counts = new Map<string, Counts>();
  for (const { alertId, active, _count } of groups) {
    const before = counts.get(alertId) ?? NONE;
    counts.set(alertId, { targets: before.targets + _count.targetId, active: before.active + (active ? _count.targetId : 0) });
  }
  return rows.map((row) => toAlert(row, counts.get(row.alertId) ?? NONE, firstOf.get(row.alertId)));
};

/** More alerts than a condition may name; the newest count. */
const MAX_NAMED = 10_000;
/** Null: all. */
const visibleIds = async (db: Clients, scope: SystemScope, deviceId?: string): Promise<string[] | null> => {
  if (!isLimited(scope) && deviceId === undefined) return null;
  const groups = await db.for(scope).alertTarget.groupBy({ by: ["alertId"], where: given({ deviceId }), orderBy: { alertId: "desc" }, take: MAX_NAMED });
  return groups.map(({ alertId }) => alertId);
};

const list = createLongListing("alerts", { startedAt: { kind: "time" }, lastSeenAt: { kind: "time" } }, { column: "alertId", kind: "text" });
const KEYS = { startedAt: true, lastSeenAt: true, alertId: true } as const;
type AlertsQuery = Parameters<typeof list>[0] & {
  readonly status?: readonly string[] | undefined;
  readonly severity?: readonly string[] | undefined;
  readonly ruleId?: string | undefined;
  readonly deviceId?: string | undefined;
};

export const pageOfAlerts = async (db: Clients, scope: SystemScope, query: AlertsQuery): Promise<Page<Alert>> => {
  const { tenantId } = scope;
  const { alert } = db.for(scope);
  const { status, severity, ruleId, deviceId } = query;
  const ids = await visibleIds(db, scope, deviceId);
  const where = {
    ...given({ ruleId }),
    ...(status === undefined ? {} : { status: { in: [...status] } }),
    ...(severity === undefined ? {} : { severity: { in: [...severity] } }),
    ...(ids === null ? {} : { alertId: { in: ids } }),
  };
  const { items, ...page } = await list(query, {
    owner: tenantId,
    walk: (asked) => db.for({ tenantId }).alert.findMany({ ...asked, where: asked.where, select: KEYS }),
    isWhole: Object.keys(where).length === 0 && !isLimited(scope),
    rows: (asked) => alert.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: (asked) => alert.count({ where: { ...where, AND: asked.where } }),
    record: (row: Row) => row,
  });
  return { items: await shown(db, scope, items), ...page };
};

interface Unanswered {
  readonly except: readonly string[];
  readonly now: Date;
  readonly limit: number;
}
/** Open ones that nobody has put off, the newest first. */
export const findUnanswered = async (db: Clients, scope: SystemScope, { except, now, limit }: Unanswered): Promise<Alert[]> => {
  const ids = await visibleIds(db, scope);
  const rows = await db.for(scope).alert.findMany({
    where: {
      ...given({ alertId: ids === null ? undefined : { in: ids } }),
      resolvedAt: null,
      status: "open",
      silenced: false,
      type: { notIn: [...except] },
      OR: [{ snoozedUntil: null }, { snoozedUntil: { lte: now } }],
    },
    orderBy: [{ startedAt: "desc" }, { alertId: "desc" }],
    take: limit,
  });
  return shown(db, scope, rows);
};

/** Null if there is none, or none that the caller sees. */
export const findAlert = async (db: Clients, scope: SystemScope, alertId: string): Promise<Alert | null> => {
  const row = await findRow(db, scope, alertId);
  const [alert] = row === null ? [] : await shown(db, scope, [row]);
  return alert === undefined || (isLimited(scope) && alert.targetCount === 0) ? null : alert;
};

/** The alerts among these that the caller sees, with the names of their rules. */
export const findNamedAlerts = async (db: Clients, scope: SystemScope, alertIds: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  const { alert, alertTarget } = db.for(scope);
  const seen = isLimited(scope) ? await alertTarget.groupBy({ by: ["alertId"], where: { alertId: { in: [...alertIds] } } }) : null;
  const ids = seen === null ? [...alertIds] : seen.map(({ alertId }) => alertId);
  const rows = await alert.findMany({ where: { alertId: { in: ids } }, select: { alertId: true, ruleName: true } });
  return new Map(rows.map(({ alertId, ruleName }) => [alertId, ruleName]));
};

/** Whether the caller sees all that the alert is about. */
export const seesAll = async (db: Clients, scope: SystemScope, { alertId, targetCount }: Alert): Promise<boolean> =>
  !isLimited(scope) || ((await findRow(db, scope, alertId))?.targetCount ?? 0) === targetCount;

export const countAlerts = async (db: Clients, scope: SystemScope): Promise<AlertCounts> => {
  const ids = await visibleIds(db, scope);
  const where = { resolvedAt: null, ...(ids === null ? {} : { alertId: { in: ids } }) };
  const groups = await db.for(scope).alert.groupBy({ by: ["status", "severity"], where, _count: { alertId: true } });
  const counts = { open: { info: 0, warning: 0, critical: 0 }, acknowledged: 0 };
  for (const { status, severity, _count } of groups) {
    if (status === "acknowledged") counts.acknowledged += _count.alertId;
    else counts.open[severity as keyof typeof counts.open] += _count.alertId; // as: the contract lets no other in
  }
  return counts;
};

const targets = createListing("alertTargets", { startedAt: { kind: "time" } }, { column: "targetId", kind: "text" });
type TargetsQuery = Parameters<typeof targets>[0] & { readonly alertId: string; readonly active?: boolean | undefined };
export const pageOfTargets = (db: Clients, scope: SystemScope, query: TargetsQuery): Promise<Page<AlertTarget>> => {
  const { alertTarget } = db.for(scope);
  const where = { alertId: query.alertId, ...given({ active: query.active }) };
  return targets(query, {
    owner: scope.tenantId,
    rows: (asked) => alertTarget.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => alertTarget.count({ where }),
    record: (row) => recordOf(AlertTarget, { ...row, kind: row.deviceId === null ? "resource" : "device", id: row.targetId }),
  });
};

const LOCK_ALERT = statement<{ readonly status: string }>(
  "alerts.lockOne",
  "select a.status from alerts a where a.tenant_id = $1 and a.alert_id = $2 for no key update",
);
/** Its status; until the transaction ends, nobody else changes it. Null: there is none. */
export const lockAlert = async (tx: SqlTx, { tenantId }: SystemScope, alertId: string): Promise<string | null> =>
  (await tx.query(LOCK_ALERT, [tenantId, alertId]))[0]?.status ?? null;

export interface AlertChange {
  readonly status?: "acknowledged" | "resolved";
  readonly acknowledgedAt?: Date;
  readonly acknowledgedBy?: string;
  readonly resolvedAt?: Date;
  readonly resolvedBy?: string;
  readonly snoozedUntil?: Date | null;
  readonly notifyAt?: Date | null;
  readonly flapping?: boolean;
  readonly note?: string | undefined;
}
export const updateAlert = async (db: Clients, scope: SystemScope, alertId: string, change: AlertChange): Promise<void> => {
  await db.for(scope).alert.updateMany({ where: { alertId }, data: { ...given(change), version: { increment: 1 } } });
};

export const wasTold = async (db: Clients, scope: SystemScope, alertId: string): Promise<boolean> => (await findRow(db, scope, alertId))?.notifiedAt != null;

const SWEEP_ROWS = 1_000;
/** True when there may be more. */
export const deleteOldAlerts = async (db: Clients, before: Date): Promise<boolean> => {
  const where = { resolvedAt: { lt: before } };
  return (await db.system.alert.deleteMany({ where, limit: SWEEP_ROWS })).count === SWEEP_ROWS;
};

/** The number of alerts that are not resolved, by severity. */
export const countOpenAlerts = async (db: Clients): Promise<ReadonlyMap<string, number>> => {
  const groups = await db.system.alert.groupBy({ by: ["severity"], where: { resolvedAt: null }, _count: { alertId: true } });
  return new Map(groups.map(({ severity, _count }) => [severity, _count.alertId]));
};
