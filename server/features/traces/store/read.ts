// Reads traces: pages of summaries, one trace's spans, and the names that filters offer. A limited caller meets only spans of devices in its reach.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { FIRST, type Page, type TraceSummary } from "../../../../protocol/index.ts";
import { isLimited } from "../../../core/access.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing } from "../../../core/listing.ts";
import { given } from "../../../core/records.ts";
import type { TenantScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { isoOfUs, type SpanSource, type StoredSpan } from "../span.ts";

export interface TraceFilter {
  readonly service?: string | undefined;
  readonly operation?: string | undefined;
  readonly deviceId?: string | undefined;
  readonly appId?: string | undefined;
  readonly status?: "ok" | "error" | undefined;
  readonly minDurationMs?: number | undefined;
  readonly maxDurationMs?: number | undefined;
  readonly requestId?: string | undefined;
}
export interface TraceWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

const has = (value: string | undefined) => (value === undefined ? undefined : { has: value });

const conditionOf = (filter: TraceFilter, { fromMs, toMs }: TraceWindow, visible: readonly string[] | null): Prisma.TraceWhereInput => {
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
    ...(visible === null ? {} : { AND: [{ deviceIds: { hasSome: [...visible] } }] }),
  };
};

interface SummaryRow {
  readonly trace_id: string;
  readonly start_us: number;
  readonly duration_us: number;
  readonly root_service: string;
  readonly root_operation: string;
  readonly span_count: number;
  readonly error_count: number;
  readonly services: readonly string[];
}
const toSummary = (row: SummaryRow): TraceSummary => ({
  traceId: row.trace_id,
  rootService: row.root_service,
  rootOperation: row.root_operation,
  startTime: isoOfUs(row.start_us),
  durationMs: row.duration_us / 1_000,
  spanCount: row.span_count,
  errorCount: row.error_count,
  services: [...row.services],
});
const fromModel = (row: Prisma.TraceModel): TraceSummary =>
  toSummary({
    trace_id: row.traceId,
    start_us: Number(row.startUs),
    duration_us: Number(row.durationUs),
    root_service: row.rootService,
    root_operation: row.rootOperation,
    span_count: row.spanCount,
    error_count: row.errorCount,
    services: row.services,
  });

const ROOT_FIRST = "order by (parent_span_id is null) desc, start_us";
const SUMMARIZE = statement<SummaryRow>(
  "traces.summarize",
  `select trace_id, min(start_us) as start_us, max(start_us + duration_us) - min(start_us) as duration_us,
     (array_agg(service ${ROOT_FIRST}))[1] as root_service, (array_agg(name ${ROOT_FIRST}))[1] as root_operation,
     count(*) as span_count, count(*) filter (where status = 2) as error_count, (array_agg(distinct service))[1:50] as services
   from trace_spans where tenant_id = $1 and trace_id = any($2::text[]) and device_id = any($3::text[]) group by trace_id`,
);

/** The figures of the spans that a limited caller sees. */
const narrowed = async (
  db: SqlTx,
  { tenantId }: TenantScope,
  items: readonly TraceSummary[],
  visible: readonly string[] | null,
): Promise<readonly TraceSummary[]> => {
  if (visible === null || items.length === 0) return items;
  const rows = await db.query(SUMMARIZE, [tenantId, items.map(({ traceId }) => traceId), visible]);
  const found = new Map(rows.map((row) => [row.trace_id, toSummary(row)]));
  return items.flatMap(({ traceId }) => found.get(traceId) ?? []);
};

const listTraces = createListing("traces", { startUs: { kind: "number" } }, { column: "traceId", kind: "text" });

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
  const where = conditionOf(query, window, visible);
  // Always by cursor, so nothing is counted.
  const asked = { ...query, cursor: query.cursor ?? FIRST, sort: "-startUs" };
  const { items, ...rest } = await listTraces(asked, {
    owner: scope.tenantId,
    rows: (part) => db.for(scope).trace.findMany({ ...part, where: { AND: [where, part.where] } }),
    count: () => Promise.resolve(0),
    record: fromModel,
  });
  return { items: [...(await narrowed(db, scope, items, visible))], ...rest };
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
/** Of the newest traces that a limited caller sees. */
export const operationsOfDevices = async (db: SqlTx, { tenantId }: TenantScope, deviceIds: readonly string[], service?: string) => {
  const rows = await db.query(OF_DEVICES, [tenantId, deviceIds, service ?? null]);
  return rows.map(({ last_us, ...names }) => ({ ...names, lastSeenAt: isoOfUs(last_us) }));
};
