// One log line per request, whatever became of it: written as its answer is, by the door that every request comes through.
// It names operations, codes and ids. Headers, bodies, paths and queries stay out of it: any of them may carry a secret.
import type { Clock } from "../core/clock.ts";
import type { AppError } from "../core/errors.ts";
import type { LazyAbort } from "../core/lazy-abort.ts";
import { type OpenSpan, readTraceparent, traceIdOf } from "../core/trace.ts";
import { endSpan } from "./call-span.ts";
import type { Exchange, HttpRequest, HttpResponse, HttpStream } from "./exchange.ts";

/** One operation that was called; a batch has several in one request. */
export interface CallRecord {
  readonly operation: string;
  readonly door: string;
  readonly status: number;
  readonly code: string | null;
  readonly durationMs: number;
  readonly requestId: string;
  readonly tenantId: string | null;
  readonly actor: string;
  /** Of a defect, or of what was away. */
  readonly cause?: unknown;
}

/** What is known of a request beside its answer. Doors and pipeline fill it in. */
export interface Notes {
  readonly calls: CallRecord[];
  /** Why it was refused before it was a call. */
  refusal: AppError | null;
}

export const newNotes = (): Notes => ({ calls: [], refusal: null });

export interface CallLogDeps {
  readonly clock: Clock;
  readonly log: Record<"debug" | "info" | "error", (fields: object, message: string) => void>;
}

interface Outcome {
  /** Null when the peer was gone before there was an answer. */
  readonly status: number | null;
  readonly requestId: string | null;
}

const fieldsOf = ({ method, headers }: HttpRequest, { calls, refusal }: Notes, { status, requestId }: Outcome): Record<string, unknown> => {
  const [first] = calls;
  const fields: Record<string, unknown> = {
    requestId,
    method,
    status,
    // Nobody was told of one when the peer was gone: leaving is no failure.
    code: status === null ? null : (refusal?.code ?? calls.find(({ code }) => code !== null)?.code ?? null),
    operations: calls.map(({ operation }) => operation),
    door: first?.door ?? null,
    tenantId: first?.tenantId ?? null,
    actor: first?.actor ?? null,
  };
  const traceparent = readTraceparent(headers["traceparent"]);
  if (traceparent !== null) fields["traceId"] = traceIdOf(traceparent);
  if (status === null) fields["aborted"] = true;
  return fields;
};

/** Whoever leaves in the middle makes work fail that nobody waits for: that is no failure of ours. */
const causeOf = ({ calls, refusal }: Notes, { status }: Outcome): unknown => {
  if (status === null) return undefined;
  const called = calls.find(({ cause }) => cause !== undefined)?.cause;
  return called ?? (refusal !== null && refusal.status >= 500 ? (refusal.cause ?? refusal) : undefined);
};

/** An exchange that is written into the log as it is answered. */
export class LoggedExchange implements Exchange {
  readonly request: HttpRequest;
  readonly gone: LazyAbort;
  readonly ending: LazyAbort;
  readonly body: Exchange["body"];
  readonly notes: Notes;
  readonly #plain: Exchange;
  readonly #deps: CallLogDeps;
  readonly #span: OpenSpan | null;
  readonly #startedAt: number;
  #written = false;

  constructor(plain: Exchange, deps: CallLogDeps, span: OpenSpan | null = null) {
    this.request = plain.request;
    this.gone = plain.gone;
    this.ending = plain.ending;
    this.body = plain.body;
    this.notes = plain.notes;
    this.#plain = plain;
    this.#deps = deps;
    this.#span = span;
    this.#startedAt = deps.clock.elapsed();
  }

  respond(response: HttpResponse): void {
    this.#answer(response);
    this.#plain.respond(response);
  }

  /** A stream may last for hours: its line tells of its beginning. */
  stream(response: HttpStream): Promise<void> {
    this.#answer(response);
    return this.#plain.stream(response);
  }

  /** The request has been dealt with; whoever left without an answer is told of now. */
  end(): void {
    this.#write({ status: null, requestId: null });
  }

  #answer({ status, headers }: Pick<HttpResponse, "status" | "headers">): void {
    this.#write({ status: this.gone.aborted ? null : status, requestId: headers["x-request-id"] ?? null });
  }

  #write(outcome: Outcome): void {
    if (this.#written) return;
    this.#written = true;
    if (this.#span !== null) endSpan(this.#span, { method: this.request.method, notes: this.notes, ...outcome });
    const { clock, log } = this.#deps;
    const fields = fieldsOf(this.request, this.notes, outcome);
    fields["durationMs"] = Math.round((clock.elapsed() - this.#startedAt) * 10) / 10;
    const error = causeOf(this.notes, outcome);
    if (error !== undefined) log.error({ ...fields, error }, "call failed");
    // Documents and preflights are asked for by browsers, not by callers.
    else if (outcome.requestId === null && outcome.status !== null) log.debug(fields, "call");
    else log.info(fields, "call");
  }
}
