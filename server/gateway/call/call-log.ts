// One log line per request, whatever becomes of it: written with its answer (request-context.ts).
// It names operations, codes and ids. Headers, bodies, paths and queries stay out of it: any of them may carry a secret.
import type { Clock } from "../../core/clock.ts";
import { type OpenSpan, readTraceparent, traceIdOf } from "../../core/ports/trace.ts";
import type { HttpRequest } from "../http/http-message.ts";
import type { RequestEnd } from "../http/request-context.ts";
import { type Notes, refusalReasonOf } from "./call-record.ts";
import { endSpan } from "./call-span.ts";

export interface CallLogDeps {
  readonly clock: Clock;
  readonly log: Record<"debug" | "info" | "error", (fields: object, message: string) => void>;
}

const fieldsOf = ({ method, headers }: HttpRequest, { calls, refusal }: Notes, { status, requestId }: RequestEnd): Record<string, unknown> => {
  const [first] = calls;
  const fields: Record<string, unknown> = {
    requestId,
    method,
    status,
    // A peer that left heard no code: leaving is no failure.
    code: status === null ? null : (refusal?.code ?? calls.find(({ code }) => code !== null)?.code ?? null),
    operations: calls.map(({ operation }) => operation),
    transport: first?.transport ?? null,
    tenantId: first?.tenantId ?? null,
    actor: first?.actor ?? null,
  };
  const traceparent = readTraceparent(headers["traceparent"]);
  const reason = status === null ? null : (refusalReasonOf(refusal) ?? calls.find(({ code }) => code !== null)?.reason ?? null);
  if (reason !== null) fields["reason"] = reason;
  if (traceparent !== null) fields["traceId"] = traceIdOf(traceparent);
  if (status === null) fields["aborted"] = true;
  return fields;
};

/** When the peer leaves in the middle, its work fails, but nobody waits for it: that is no failure of ours. */
const causeOf = ({ calls, refusal }: Notes, { status }: RequestEnd): unknown => {
  if (status === null) return undefined;
  const called = calls.find(({ cause }) => cause !== undefined)?.cause;
  return called ?? (refusal !== null && refusal.status >= 500 ? (refusal.cause ?? refusal) : undefined);
};

/** The line of one request. The answer completes it; a request that nobody answered writes it at its end. */
export class CallLogEntry {
  readonly #request: HttpRequest;
  readonly #notes: Notes;
  readonly #deps: CallLogDeps;
  readonly #span: OpenSpan | null;
  readonly #startedAt: number;
  #written = false;

  constructor({ request, notes }: { readonly request: HttpRequest; readonly notes: Notes }, deps: CallLogDeps, span: OpenSpan | null = null) {
    this.#request = request;
    this.#notes = notes;
    this.#deps = deps;
    this.#span = span;
    this.#startedAt = deps.clock.elapsed();
  }

  /** Writes the line at the first call; later ones change nothing. */
  write(ending: RequestEnd): void {
    if (this.#written) return;
    this.#written = true;
    if (this.#span !== null) endSpan(this.#span, { method: this.#request.method, notes: this.#notes, ...ending });
    const { clock, log } = this.#deps;
    const fields = fieldsOf(this.#request, this.#notes, ending);
    fields["durationMs"] = Math.round((clock.elapsed() - this.#startedAt) * 10) / 10;
    const error = causeOf(this.#notes, ending);
    if (error !== undefined) log.error({ ...fields, error }, "call failed");
    // Browsers ask for documents and preflights, callers do not.
    else if (ending.requestId === null && ending.status !== null) log.debug(fields, "call");
    else log.info(fields, "call");
  }
}
