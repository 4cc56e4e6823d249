// The library's answer object as an Exchange: answered once, and never after the peer has gone.
import type { HttpResponse as UwsResponse } from "uWebSockets.js";
import { createLazyAbort } from "../../core/lazy-abort.ts";
import { newNotes } from "../call-log.ts";
import type { Exchange, HttpResponse, HttpStream } from "../exchange.ts";
import { isChunked } from "../request-head.ts";
import { readBody } from "./body.ts";
import { writeResponse, writeStream } from "./respond.ts";
import type { LiveRequest } from "./snapshot.ts";
import type { Traffic } from "./traffic.ts";

// A class: objects whose functions differ each time cost more than the answer.
export class UwsExchange implements Exchange {
  readonly request: LiveRequest;
  readonly gone = createLazyAbort();
  readonly ending = createLazyAbort();
  readonly notes = newNotes();
  readonly body: Promise<Uint8Array | null>;
  readonly #res: UwsResponse;
  readonly #traffic: Traffic;
  #answered = false;

  constructor(res: UwsResponse, request: LiveRequest, { maxBodyBytes, traffic }: { readonly maxBodyBytes: number; readonly traffic: Traffic }) {
    this.#res = res;
    this.#traffic = traffic;
    this.request = request;
    res.onAborted(() => {
      request.release();
      this.gone.abort();
      this.ending.abort();
    });
    this.body = readBody(res, request, { limitBytes: maxBodyBytes, gone: this.gone });
  }

  /** True for one answer, as long as there is somebody to hear it. */
  #mayAnswer(): boolean {
    if (this.gone.aborted || this.#answered) return false;
    this.#answered = true;
    return true;
  }

  respond(response: HttpResponse): void {
    if (!this.#mayAnswer()) return;
    this.request.release();
    const isLast = this.#traffic.isLeaving || isChunked(this.request);
    writeResponse(this.#res, isLast ? { ...response, close: true } : response, this.request.method === "HEAD");
  }

  async stream(response: HttpStream): Promise<void> {
    if (!this.#mayAnswer()) return;
    this.request.release();
    const { streams } = this.#traffic;
    streams.add(this.ending);
    await writeStream(this.#res, response, { gone: this.gone, ending: this.ending.signal }).finally(() => streams.delete(this.ending));
  }
}
