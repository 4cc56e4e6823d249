// One call and its answer: keeps what is kept of the answer, and ends the connection when there is too much of it or it takes too long.
import { type Dispatcher, errors } from "undici";
import { type OutboundAnswer, type OutboundCall, OutboundError, type OutboundFailure } from "../../core/ports/outbound.ts";
import type { Wire } from "./connect.ts";

const TIMEOUT_MS = 15_000;
const MAX_BODY = 65_536;

/** What undici says of a failure. All that is not here is an answer that is not HTTP. */
const FAILURES: ReadonlyMap<string, OutboundFailure> = new Map([
  ["UND_ERR_HEADERS_OVERFLOW", "TOO_LARGE"],
  ["UND_ERR_SOCKET", "CONNECT"],
  ["ECONNRESET", "CONNECT"],
  ["EPIPE", "CONNECT"],
  ["UND_ERR_DESTROYED", "CONNECT"],
  ["UND_ERR_CLOSED", "CONNECT"],
]);

const toOutboundError = (error: Error & { readonly code?: string }, address: string | null): OutboundError => {
  if (error instanceof OutboundError) return error;
  const isTls = error.code?.startsWith("ERR_SSL_") === true;
  return new OutboundError(isTls ? "TLS" : (FAILURES.get(error.code ?? "") ?? "PROTOCOL"), error.message, { address, cause: error });
};

const flat = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> => {
  const all: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) all[name] = typeof value === "string" ? value : value.join(", ");
  return all;
};

/** What ends the calls of a signal. Hundreds of calls share one, and each listener of its own would be looked for among all others. */
const endings = new WeakMap<AbortSignal, Set<() => void>>();
const callsOf = (signal: AbortSignal): Set<() => void> => {
  const before = endings.get(signal);
  if (before !== undefined) return before;
  const calls = new Set<() => void>();
  endings.set(signal, calls);
  signal.addEventListener(
    "abort",
    () => {
      for (const end of calls) end();
    },
    { once: true },
  );
  return calls;
};

const NOTHING = Buffer.alloc(0);

export class Exchange implements Dispatcher.DispatchHandler {
  readonly answer: Promise<OutboundAnswer>;
  /** Set by the client that serves the call. */
  reached: Pick<Wire, "address"> | null = null;
  readonly #maxBody: number;
  readonly #startedAt: number;
  readonly #elapsed: () => number;
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #head: Pick<OutboundAnswer, "statusCode" | "headers"> | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #settle: { readonly resolve: (answer: OutboundAnswer) => void; readonly reject: (error: OutboundError) => void } | null = null;

  constructor({ timeoutMs = TIMEOUT_MS, maxBodyBytes = MAX_BODY, signal }: OutboundCall, elapsed: () => number) {
    this.#maxBody = maxBodyBytes;
    this.#elapsed = elapsed;
    this.#startedAt = elapsed();
    this.answer = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#timer = setTimeout(() => this.#end(`no complete answer within ${timeoutMs} ms`), timeoutMs);
    this.#signal = signal;
    if (signal?.aborted === true) this.#aborted();
    else if (signal !== undefined) callsOf(signal).add(this.#aborted);
  }

  get isOver(): boolean {
    return this.#settle === null;
  }

  readonly #aborted = (): void => this.#end("the call was given up");

  /** The answer is decided once; what the client says afterwards changes nothing. */
  #take() {
    const settle = this.#settle;
    this.#settle = null;
    clearTimeout(this.#timer);
    if (this.#signal !== undefined) endings.get(this.#signal)?.delete(this.#aborted);
    return settle;
  }

  fail(error: OutboundError): void {
    this.#take()?.reject(error);
    this.#controller?.abort(error);
  }

  #end(message: string): void {
    this.fail(new OutboundError("TIMEOUT", message, { address: this.reached?.address ?? null }));
  }

  #finish(truncated: boolean): void {
    if (this.#head === null) return;
    const [body, durationMs] = [this.#bytes === 0 ? NOTHING : Buffer.concat(this.#chunks), Math.round(this.#elapsed() - this.#startedAt)];
    this.#take()?.resolve({ ...this.#head, body, truncated, address: this.reached?.address ?? null, durationMs });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // Its time was over while it waited for a connection: it is not sent.
    if (this.#settle === null) controller.abort(new Error("the call is over"));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number, headers: Record<string, string | string[]>): void {
    if (statusCode >= 200) this.#head = { statusCode, headers: flat(headers) };
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const left = this.#maxBody - this.#bytes;
    this.#chunks.push(chunk.length > left ? chunk.subarray(0, left) : chunk);
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#maxBody) return;
    this.#finish(true);
    controller.abort(new errors.ResponseExceededMaxSizeError());
  }

  onResponseEnd(): void {
    this.#finish(false);
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#take()?.reject(toOutboundError(error, this.reached?.address ?? null));
  }
}
