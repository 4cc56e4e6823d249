// Writes the spans of the gateway itself into the traces of their tenants, in batches, once a second.
import type { TenantLookup } from "../../core/ports/lookups.ts";
import type { OwnSpan, OwnSpans, SpanAttributes } from "../../core/ports/trace.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Ingest } from "./ingest.ts";
import type { SpanMeters } from "./meters.ts";
import type { StoredSpan } from "./span.ts";

const EVERY_MS = 1_000;
const BATCH = 500;
const INTERNAL = 1;
const SERVER = 2;
const UNSET = 0;
const ERROR = 2;

export interface FlushDeps {
  readonly ownSpans: OwnSpans;
  readonly tenants: Pick<TenantLookup, "find">;
  readonly ingest: Ingest;
  readonly meters: SpanMeters;
}

const known = (attributes: SpanAttributes): SpanAttributes => Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== null));
const textOf = (attributes: SpanAttributes, name: string): string | null => {
  const value = attributes[name];
  return typeof value === "string" ? value : null;
};

const toSpan = ({ tenantId, isCall, failed, attributes, ...own }: OwnSpan): StoredSpan => ({
  ...own,
  source: isCall ? "gateway" : "command",
  service: "mooring",
  kind: isCall ? SERVER : INTERNAL,
  status: failed ? ERROR : UNSET,
  statusMessage: textOf(attributes, "error.type"),
  deviceId: textOf(attributes, "mooring.device_id"),
  commandId: textOf(attributes, "mooring.command_id"),
  appId: null,
  requestId: textOf(attributes, "mooring.request_id"),
  attributes: known(attributes),
  resource: { "service.name": "mooring", "svc.tenant.id": tenantId },
  events: [],
  links: [],
});

const byTenant = (spans: readonly OwnSpan[]): ReadonlyMap<string, OwnSpan[]> => {
  const groups = new Map<string, OwnSpan[]>();
  for (const span of spans) groups.set(span.tenantId, [...(groups.get(span.tenantId) ?? []), span]);
  return groups;
};

export const createFlush = ({ ownSpans, tenants, ingest, meters }: FlushDeps): { readonly job: Job; flush(): Promise<void> } => {
  const write = async (tenantId: string, spans: readonly OwnSpan[]): Promise<void> => {
    try {
      const tenant = await tenants.find(tenantId);
      const { rejected } = tenant === null ? { rejected: new Map([["", spans.length]]) } : await ingest(tenant, spans.map(toSpan));
      for (const count of rejected.values()) meters.dropped(count);
    } catch (error) {
      // Nobody waits for them, and the next ones are as good.
      meters.dropped(spans.length);
      throw error;
    }
  };
  /** True while there may be more. */
  const batch = async (): Promise<boolean> => {
    const taken = ownSpans.take(BATCH);
    for (const [tenantId, spans] of byTenant(taken)) await write(tenantId, spans);
    return taken.length === BATCH;
  };
  return {
    job: { name: "traces.flush", everyMs: EVERY_MS, run: batch },
    flush: async () => {
      while (await batch());
    },
  };
};
