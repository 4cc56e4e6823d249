// Reads traces: pages of summaries, one trace's spans, and the names that filters offer. A limited caller meets only spans of devices in its reach.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { FIRST, type Page, type TraceSummary } from "../../../../protocol/index.ts";
import { isLimited } from "../../../core/access.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createLongListing } from "../../../core/rows/listing.ts";
import { given } from "../../../core/rows/records.ts";
import type { TenantScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { isoOfUs, type SpanSource, type StoredSpan, type TraceFilter, type TraceWindow } from "../span.ts";
import { listNarrow, type NarrowRow } from "./narrow.ts";

const has = (value: string | undefined) => (value === undefined ? undefined : { has: value });

const conditionOf = (filter: TraceFilter, { fromMs, toMs }: TraceWindow) => {
  const { service, operation, deviceId, appId, status, minDurationMs, maxDurationMs, requestId } = filter;
  const duration = given({
    gte: minDurationMs === undefined ? undefined : BigInt(minDurationMs) * 1_000n,
    lte: maxDurationMs === undefined ? undefined : BigInt(maxDurationMs) * 1_000n,
  });
  return {
    startUs: { gte: BigInt(fromMs) * 1_000n, lt: BigInt(toMs) * 1_000n },
    ...given({ services: has(service), operations: has(operation), deviceIds: has(deviceId), appIds: has(appId), requestIds: has(requestId) }),
    ...(Object.keys(duration).length === 0 ? {} : { durationUs: duration }),
    ...(status === undefined ? {} : { errorCount: status === "error" ? { gt: 0 } : 0 }),
  };
};

interface Figures {
  readonly startUs: number | bigint;
  readonly durationUs: number | bigint;
}
const toSummary = ({ startUs, durationUs, services, ...row }: Omit<NarrowRow, "startUs" | "durationUs"> & Figures): TraceSummary => ({
  traceId: row.traceId,
  rootService: row.rootService,
  rootOperation: row.rootOperation,
  startTime: isoOfUs(Number(startUs)),
  durationMs: Number(durationUs) / 1_000,
  spanCount: row.spanCount,
  errorCount: row.errorCount,
  services: [...services],
});

const listTraces = createLongListing("traces", { startUs: { kind: "number" } }, { column: "traceId", kind: "text" });

export interface TraceQuery extends TraceFilter {
  readonly cursor?: string | undefined;
  readonly pageSize?: number | undefined;
}

/** `visible`: the devices of a limited caller. */
export const pageOfTraces = async (
  db: Clients & SqlTx,
  scope: TenantScope,
  { query, window, visible }: { readonly query: TraceQuery; readonly window: TraceWindow; readonly visible: readonly string[] | null },
): Promise<Page<TraceSummary>> => {
  const where = conditionOf(query, window);
  // Always by cursor, so nothing is counted.
  const asked = { ...query, cursor: query.cursor ?? FIRST, sort: "-startUs" };
  return listTraces(asked, {
    owner: scope.tenantId,
    walk: (part) =>
      db
        .for({ tenantId: scope.tenantId })
        .trace.findMany({ ...part, where: { startUs: where.startUs, AND: part.where }, select: { startUs: true, traceId: true } }),
    rows: async (part, last, upTo): Promise<readonly (NarrowRow | Prisma.TraceModel)[]> =>
      visible === null
        ? db.for(scope).trace.findMany({ ...part, where: { AND: [where, part.where] } })
        : listNarrow(db, scope, { query, window, visible, last, upTo, take: part.take }),
    count: () => Promise.resolve(0),
    record: toSummary,
  });
};

// as: this feature alone writes these columns, from values of these types.
const toSpan = ({ startUs, durationUs, source, attributes, resource, events, links, ...row }: Prisma.TraceSpanModel): StoredSpan => ({
  ...row,
  source: source as SpanSource,
  startUs: Number(startUs),
  durationUs: Number(durationUs),
  appId: null,
  requestId: null,
  attributes: attributes as StoredSpan["attributes"],
  resource: resource as StoredSpan["resource"],
  events: events as unknown as StoredSpan["events"],
  links: links as unknown as StoredSpan["links"],
});

/** Earliest first; empty for a trace that the caller does not see. */
export const findSpans = async (db: Clients, scope: TenantScope, traceId: string, limit: number): Promise<readonly StoredSpan[]> => {
  const trace = await db.for(scope).trace.findFirst({ where: { traceId } });
  if (trace === null) return [];
  // The devices have to be named for a limited caller, and only those in its reach are left then.
  const where = { traceId, ...(isLimited(scope) ? { deviceId: { in: trace.deviceIds } } : {}) };
  return (await db.for(scope).traceSpan.findMany({ where, orderBy: [{ startUs: "asc" }, { durationUs: "desc" }], take: limit })).map(toSpan);
};

const NAMES = 1_000;
export const listOperations = async (db: Clients, scope: TenantScope, service?: string) => {
  const rows = await db.for(scope).traceOperation.findMany({
    where: given({ service }),
    orderBy: [{ service: "asc" }, { operation: "asc" }],
    take: NAMES,
  });
  return rows.map(({ service: of, operation, lastSeenAt }) => ({ service: of, operation, lastSeenAt: lastSeenAt.toISOString() }));
};

const OF_DEVICES = statement<{ readonly service: string; readonly operation: string; readonly last_us: number }>(
  "traces.operationsOfDevices",
  `select s.service, s.name as operation, max(s.start_us) as last_us from (
       select trace_id from traces where tenant_id = $1 and device_ids && $2::text[] order by start_us desc limit ${NAMES}) t
     join trace_spans s on s.tenant_id = $1 and s.trace_id = t.trace_id
    where s.device_id = any($2::text[]) and ($3::text is null or s.service = $3) group by 1, 2 order by 1, 2 limit ${NAMES}`,
);
/** The operations of the newest traces that a limited caller sees. */
export const operationsOfDevices = async (db: SqlTx, { tenantId }: TenantScope, deviceIds: readonly string[], service?: string) => {
  const rows = await db.query(OF_DEVICES, [tenantId, deviceIds, service ?? null]);
  return rows.map(({ last_us, ...names }) => ({ ...names, lastSeenAt: isoOfUs(last_us) }));
};
