// One span per request, for a collector and for the tenant's own traces: it continues the caller's trace, and everything that the request starts continues the span.
import { type OpenSpan, readTraceparent, type Tracing } from "../../core/ports/trace.ts";
import type { HttpRequest } from "../http/http-message.ts";
import type { Notes } from "./call-record.ts";

/** Load balancers ask for these every few seconds; nobody traces them. */
const PROBES = /\/(?:livez|readyz|health(?:\/[a-z]+)?)$/;

/** Begin it before anything else reads the request's traceparent. */
export const beginSpan = (tracing: Tracing | null, { path, headers }: HttpRequest): OpenSpan | null => {
  if (tracing === null) return null;
  const parent = readTraceparent(headers["traceparent"]);
  if ((parent === null && !tracing.isForAll) || PROBES.test(path)) return null;
  const span = tracing.begin(parent);
  if (span === null) return null;
  // The headers are this request's own copy.
  (headers as Record<string, string>)["traceparent"] = span.traceparent;
  return span;
};

interface Ended {
  readonly method: string;
  /** Null when the caller left before there was an answer. */
  readonly status: number | null;
  readonly requestId: string | null;
  readonly notes: Notes;
}

export const endSpan = (span: OpenSpan, { method, status, requestId, notes: { calls, refusal } }: Ended): void => {
  const [first] = calls;
  span.end({
    name: first === undefined ? `HTTP ${method}` : calls.length === 1 ? first.operation : "batch",
    failed: status === null || status >= 500,
    attributes: {
      "http.request.method": method,
      "http.response.status_code": status,
      "error.type": refusal?.code ?? calls.find(({ code }) => code !== null)?.code ?? null,
      "mooring.operations": calls.map(({ operation }) => operation),
      "mooring.request_id": requestId,
      "mooring.tenant_id": first?.tenantId ?? null,
      "mooring.device_id": calls.length === 1 ? (first?.deviceId ?? null) : null,
      "mooring.actor": first?.actor ?? null,
    },
  });
};
