// Traces: takes spans over OTLP, adds the gateway's own, and shows a trace from the portal's call through the queue to the agent's ack.

import { contract, TRACE_LIMITS, type Trace, type TraceSpan } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import { implement } from "../../core/feature.ts";
import type { CommandHistory } from "../../core/ports/command-history.ts";
import type { TenantLookup } from "../../core/ports/lookups.ts";
import type { OwnSpans } from "../../core/ports/trace.ts";
import { inRounds } from "../../core/rows/retention.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { withCommands } from "./command-spans.ts";
import { createFlush } from "./flush.ts";
import { createIngest } from "./ingest.ts";
import { createSpanMeters } from "./meters.ts";
import { type Rejections, readSpans, reject } from "./read-spans.ts";
import type { TraceWindow } from "./span.ts";
import { isoOfUs, KINDS, STATUSES, type StoredSpan } from "./span.ts";
import { forgetNames, forgetTraces } from "./store/forget.ts";
import { findSpans, listOperations, operationsOfDevices, pageOfTraces } from "./store/read.ts";

const FORGET_EVERY_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Commands of one trace whose ways it shows. */
const MAX_COMMANDS = 50;

export interface TracesFeatureDeps extends Pick<FeatureKit, "db" | "clock" | "plan"> {
  readonly ownSpans: OwnSpans;
  readonly tenants: Pick<TenantLookup, "find">;
  /** The devices that the caller sees. */
  readonly devices: { ids(scope: SystemScope): Promise<readonly string[]> };
  readonly commands: { histories(scope: SystemScope, commandIds: readonly string[]): Promise<readonly CommandHistory[]> };
}

export interface Traces extends Feature<typeof contract.traces> {
  /** Writes the gateway's own spans now. */
  flush(): Promise<void>;
}

const answerOf = (rejected: Rejections) => {
  const count = [...rejected.values()].reduce((sum, each) => sum + each, 0);
  if (count === 0) return {};
  const errorMessage = [...rejected].map(([reason, each]) => `${each} ${reason}`).join("; ");
  return { partialSuccess: { rejectedSpans: String(count), errorMessage } };
};

const shown = (span: StoredSpan): TraceSpan => ({
  spanId: span.spanId,
  parentSpanId: span.parentSpanId,
  service: span.service,
  operation: span.name,
  kind: KINDS[span.kind] ?? KINDS[0],
  startTime: isoOfUs(span.startUs),
  durationMs: span.durationUs / 1_000,
  status: STATUSES[span.status] ?? STATUSES[0],
  statusMessage: span.statusMessage,
  source: span.source,
  deviceId: span.deviceId,
  commandId: span.commandId,
  attributes: { ...span.attributes },
  resource: { ...span.resource },
  events: span.events.map((event) => ({ ...event, attributes: { ...event.attributes } })),
  links: [...span.links],
});

const traceOf = (traceId: string, spans: readonly StoredSpan[], truncated: boolean): Trace => {
  const [first] = spans;
  const root = spans.find(({ parentSpanId }) => parentSpanId === null) ?? first;
  const startUs = first?.startUs ?? 0;
  const endUs = spans.reduce((latest, span) => Math.max(latest, span.startUs + span.durationUs), startUs);
  return {
    traceId,
    rootService: root?.service ?? "",
    rootOperation: root?.name ?? "",
    startTime: isoOfUs(startUs),
    durationMs: (endUs - startUs) / 1_000,
    spanCount: spans.length,
    errorCount: spans.filter(({ status }) => STATUSES[status] === "error").length,
    services: [...new Set(spans.map(({ service }) => service))].slice(0, 50),
    truncated,
    spans: spans.map(shown),
  };
};

/** Null when it is longer than one query may span. */
const windowOf = ({ from, to }: { readonly from?: string | undefined; readonly to?: string | undefined }, nowMs: number): TraceWindow | null => {
  const toMs = to === undefined ? Math.max(nowMs, from === undefined ? 0 : Date.parse(from)) : Date.parse(to);
  const fromMs = from === undefined ? toMs - HOUR_MS : Date.parse(from);
  return toMs - fromMs > TRACE_LIMITS.windowHours * HOUR_MS ? null : { fromMs, toMs };
};

export const createTraces = ({ db, clock, plan, ownSpans, tenants, devices, commands }: TracesFeatureDeps): Traces => {
  const meters = createSpanMeters(ownSpans.dropped);
  const ingest = createIngest({ db, plan });
  const { job, flush } = createFlush({ ownSpans, tenants, ingest, meters });
  const nowUs = (): number => clock.now().getTime() * 1_000;

  const read = async (scope: TenantScope, traceId: string): Promise<Trace | null> => {
    const found = await findSpans(db, scope, traceId, TRACE_LIMITS.spansPerTrace + 1);
    if (found.length === 0) return null;
    const commandIds = [...new Set(found.flatMap(({ source, commandId }) => (source === "command" && commandId !== null ? [commandId] : [])))];
    const histories = await commands.histories(scope, commandIds.slice(0, MAX_COMMANDS));
    const spans = withCommands(found, histories, nowUs());
    return traceOf(traceId, spans.slice(0, TRACE_LIMITS.spansPerTrace), spans.length > TRACE_LIMITS.spansPerTrace);
  };

  const visibleTo = async (scope: TenantScope): Promise<readonly string[] | null> => (isLimited(scope) ? devices.ids(scope) : null);
  const operationsOf = async (scope: TenantScope, service?: string) => {
    const visible = await visibleTo(scope);
    return visible === null ? listOperations(db, scope, service) : operationsOfDevices(db, scope, visible, service);
  };

  return {
    handlers: implement(contract.traces, {
      ingest: async ({ scope: { tenantId, tenant, principal } }, { resourceSpans = [] }) => {
        const { spans, rejected } = readSpans(resourceSpans, { tenantId, deviceId: principal.kind === "agent" ? principal.deviceId : null }, nowUs());
        const stored = spans.length === 0 ? new Map<string, number>() : (await ingest(tenant, spans)).rejected;
        for (const [reason, count] of stored) reject(rejected, reason, count);
        const refused = [...rejected.values()].reduce((sum, each) => sum + each, 0);
        meters.received(spans.length + refused - [...stored.values()].reduce((sum, each) => sum + each, 0));
        meters.rejected(refused);
        return answerOf(rejected);
      },
      list: async ({ scope, fail }, query) => {
        const window = windowOf(query, clock.now().getTime());
        if (window === null) throw fail("TRACE_RANGE_TOO_LARGE", { maxHours: TRACE_LIMITS.windowHours });
        return pageOfTraces(db, scope, { query, window, visible: await visibleTo(scope) });
      },
      services: async ({ scope }) => {
        const newest = new Map<string, string>();
        for (const { service, lastSeenAt } of await operationsOf(scope)) {
          const known = newest.get(service);
          if (known === undefined || known < lastSeenAt) newest.set(service, lastSeenAt);
        }
        return { items: [...newest].map(([service, lastSeenAt]) => ({ service, lastSeenAt })) };
      },
      operations: async ({ scope }, { service }) => ({ items: await operationsOf(scope, service) }),
      get: async ({ scope, fail }, { traceId }) => {
        const trace = await read(scope, traceId.toLowerCase());
        if (trace === null) throw fail("TRACE_NOT_FOUND", { traceId });
        return trace;
      },
    }),
    jobs: [
      job,
      { name: "traces.forget", everyMs: FORGET_EVERY_MS, run: inRounds(1, (batch) => forgetTraces(db, batch)) },
      { name: "traces.forget-names", everyMs: FORGET_EVERY_MS, run: () => forgetNames(db) },
    ],
    gauges: meters.gauges,
    flush,
  };
};
