// A request context over the library's answer object, which nobody may touch once the peer has gone.
import type { HttpResponse as UwsResponse } from "uWebSockets.js";
import { createLazyAbort } from "../../core/lifecycle/lazy-abort.ts";
import type { HttpResponse, HttpStream } from "../http/http-message.ts";
import { RequestContext } from "../http/request-context.ts";
import { isChunked } from "../http/request-head.ts";
import { readBody } from "./body.ts";
import { writeResponse, writeStream } from "./respond.ts";
import type { LiveRequest } from "./snapshot.ts";
import type { Traffic } from "./traffic.ts";

// A class: objects whose functions differ each time cost more than the answer.
export class UwsRequestContext extends RequestContext {
  readonly request: LiveRequest;
  readonly gone = createLazyAbort();
  readonly ending = createLazyAbort();
  readonly body: Promise<Uint8Array | null>;
  readonly #res: UwsResponse;
  readonly #traffic: Traffic;

  constructor(res: UwsResponse, request: LiveRequest, { maxBodyBytes, traffic }: { readonly maxBodyBytes: number; readonly traffic: Traffic }) {
    super();
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

  protected override write(response: HttpResponse): void {
    this.request.release();
    const isLast = this.#traffic.isLeaving || isChunked(this.request);
    writeResponse(this.#res, isLast ? { ...response, close: true } : response, this.request.method === "HEAD");
  }

  protected override async writeStream(response: HttpStream): Promise<void> {
    this.request.release();
    const { streams } = this.#traffic;
    streams.add(this.ending);
    await writeStream(this.#res, response, { gone: this.gone, ending: this.ending.signal }).finally(() => streams.delete(this.ending));
  }
}
