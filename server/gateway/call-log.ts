// One log line per request, whatever became of it: written as its answer is, by the door that every request comes through.
// It names operations, codes and ids. Headers, bodies, paths and queries stay out of it: any of them may carry a secret.
import type { Clock } from "../core/clock.ts";
import type { AppError } from "../core/errors.ts";
import { readTraceparent, traceIdOf } from "../core/trace.ts";
import type { Exchange, HttpRequest } from "./exchange.ts";

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

export interface LoggedExchange {
  readonly exchange: Exchange;
  /** The request has been dealt with; whoever left without an answer is told of now. */
  end(): void;
}

const fieldsOf = ({ method, headers }: HttpRequest, { calls, refusal }: Notes, { status, requestId }: Outcome): object => {
  const [first] = calls;
  const traceparent = readTraceparent(headers["traceparent"]);
  return {
    requestId,
    method,
    status,
    code: refusal?.code ?? calls.find(({ code }) => code !== null)?.code ?? null,
    operations: calls.map(({ operation }) => operation),
    door: first?.door ?? null,
    tenantId: first?.tenantId ?? null,
    actor: first?.actor ?? null,
    ...(traceparent === null ? {} : { traceId: traceIdOf(traceparent) }),
    ...(status === null ? { aborted: true } : {}),
  };
};

/** Whoever leaves in the middle makes work fail that nobody waits for: that is no failure of ours. */
const causeOf = ({ calls, refusal }: Notes, { status }: Outcome): unknown => {
  if (status === null) return undefined;
  const called = calls.find(({ cause }) => cause !== undefined)?.cause;
  return called ?? (refusal !== null && refusal.status >= 500 ? (refusal.cause ?? refusal) : undefined);
};

export const createCallLog =
  ({ clock, log }: CallLogDeps) =>
  (plain: Exchange): LoggedExchange => {
    const { request, gone, notes } = plain;
    const startedAt = clock.elapsed();
    let written = false;

    const write = (outcome: Outcome): void => {
      if (written) return;
      written = true;
      const fields = { ...fieldsOf(request, notes, outcome), durationMs: Math.round((clock.elapsed() - startedAt) * 10) / 10 };
      const error = causeOf(notes, outcome);
      if (error !== undefined) log.error({ ...fields, error }, "call failed");
      // Documents and preflights are asked for by browsers, not by callers.
      else if (outcome.requestId === null && outcome.status !== null) log.debug(fields, "call");
      else log.info(fields, "call");
    };
    const outcomeOf = ({ status, headers }: { readonly status: number; readonly headers: Readonly<Record<string, string>> }): Outcome => ({
      status: gone.aborted ? null : status,
      requestId: headers["x-request-id"] ?? null,
    });

    const exchange: Exchange = {
      ...plain,
      respond: (response) => {
        write(outcomeOf(response));
        plain.respond(response);
      },
      // A stream may last for hours: its line tells of its beginning.
      stream: (response) => {
        write(outcomeOf(response));
        return plain.stream(response);
      },
    };
    return { exchange, end: () => write({ status: null, requestId: null }) };
  };
