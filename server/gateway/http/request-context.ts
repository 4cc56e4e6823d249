// One HTTP request and its answer, free of the library underneath. Whoever answers calls `respond` or `stream` once; every answer leaves through
// here, so the log line and the headers that all answers share are added in one place.
import type { LazyAbort } from "../../core/lifecycle/lazy-abort.ts";
import { newNotes } from "../call/call-record.ts";
import { compressed, isWorthCompressing } from "./compression.ts";
import type { HttpHeaders, HttpRequest, HttpResponse, HttpStream } from "./http-message.ts";

/** Both may name what the answer varies by. */
const merged = (common: HttpHeaders, own: HttpHeaders): HttpHeaders => {
  const vary = [common["Vary"], own["Vary"]].filter((name) => name !== undefined);
  return { ...common, ...own, ...(vary.length === 0 ? {} : { Vary: vary.join(", ") }) };
};

const VARY: HttpHeaders = { Vary: "Accept-Encoding" };

export interface RequestEnd {
  /** Null when the peer was gone before there was an answer. */
  readonly status: number | null;
  readonly requestId: string | null;
}

export abstract class RequestContext {
  abstract readonly request: HttpRequest;
  /** Fires when the peer is gone; nothing is written after that. */
  abstract readonly gone: LazyAbort;
  /** Fires when the peer is gone and when the listener closes: a stream ends then. */
  abstract readonly ending: LazyAbort;
  /** The whole body, or null when it is larger than the limit the router gave. Rejects when the peer goes away before its end. */
  abstract readonly body: Promise<Uint8Array | null>;
  readonly notes = newNotes();
  /** HttpHeaders of every answer to this request. */
  commonHeaders: HttpHeaders | null = null;
  /** The line that the answer completes. */
  logEntry: { write(ending: RequestEnd): void } | null = null;
  #answered = false;

  /** A promise only while the answer waits to be compressed. */
  respond(response: HttpResponse): Promise<void> | undefined {
    if (!this.#mayAnswer(response)) return undefined;
    const answer = this.#complete(response);
    if (!isWorthCompressing(answer)) return void this.write(answer);
    const ready = compressed({ ...answer, headers: merged(VARY, answer.headers) }, this.request.headers["accept-encoding"]);
    if (!(ready instanceof Promise)) return void this.write(ready);
    return ready.then((later) => {
      if (!this.gone.aborted) this.write(later);
    });
  }

  /** A stream may last for hours, so its log line tells of its beginning. */
  async stream(response: HttpStream): Promise<void> {
    if (this.#mayAnswer(response)) await this.writeStream(this.#complete(response));
    // What it has begun ends, too.
    else await response.body.cancel();
  }

  protected abstract write(response: HttpResponse): void;
  protected abstract writeStream(response: HttpStream): Promise<void>;

  /** True once, and only while the peer listens. */
  #mayAnswer({ status, headers }: Pick<HttpResponse, "status" | "headers">): boolean {
    this.logEntry?.write({ status: this.gone.aborted ? null : status, requestId: headers["x-request-id"] ?? null });
    if (this.gone.aborted || this.#answered) return false;
    this.#answered = true;
    return true;
  }

  #complete<A extends { readonly headers: HttpHeaders }>(response: A): A {
    return this.commonHeaders === null ? response : { ...response, headers: merged(this.commonHeaders, response.headers) };
  }
}

/** What a transport makes of a request's head, once: how much body it takes in, and who answers. */
export interface Reception {
  readonly maxBodyBytes: number;
  handle(context: RequestContext): Promise<void>;
}

export interface HttpTransport {
  /** Decides before anything is awaited. Must not throw. */
  receive(request: HttpRequest): Reception;
}
