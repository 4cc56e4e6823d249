// A request that no socket carries: its answer is handed to the caller in this process.
import { createLazyAbort } from "../../core/lifecycle/lazy-abort.ts";
import type { HttpRequest, HttpResponse } from "./http-message.ts";
import { type HttpTransport, RequestContext } from "./request-context.ts";

class InProcessContext extends RequestContext {
  readonly request: HttpRequest;
  readonly gone = createLazyAbort();
  readonly ending = createLazyAbort();
  readonly body = Promise.resolve(new Uint8Array(0));
  readonly #handOver: (response: HttpResponse) => void;

  constructor(request: HttpRequest, handOver: (response: HttpResponse) => void) {
    super();
    this.request = request;
    this.#handOver = handOver;
  }

  protected override write(response: HttpResponse): void {
    this.#handOver(response);
  }

  protected override writeStream(): Promise<void> {
    return Promise.reject(new Error("such a request has no stream"));
  }
}

export const answerOf = (transport: HttpTransport, request: HttpRequest): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    transport.receive(request).handle(new InProcessContext(request, resolve)).catch(reject);
  });
