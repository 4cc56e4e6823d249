// A request that no socket carries: its answer is handed to the caller in this process.
import { createLazyAbort } from "../../core/lifecycle/lazy-abort.ts";
import type { InProcessAnswer, InProcessCall } from "../../core/ports/in-process.ts";
import type { HttpRequest, HttpResponse } from "./http-message.ts";
import { type HttpTransport, RequestContext } from "./request-context.ts";

class InProcessContext extends RequestContext {
  readonly request: HttpRequest;
  readonly gone = createLazyAbort();
  readonly ending = createLazyAbort();
  readonly body: Promise<Uint8Array | null>;
  readonly #handOver: (response: HttpResponse) => void;

  /** `body`: null if it is larger than its operation takes. */
  constructor(request: HttpRequest, body: Uint8Array | null, handOver: (response: HttpResponse) => void) {
    super();
    this.request = request;
    this.body = Promise.resolve(body);
    this.#handOver = handOver;
  }

  protected override write(response: HttpResponse): void {
    this.#handOver(response);
  }

  protected override writeStream(): Promise<void> {
    return Promise.reject(new Error("such a request has no stream"));
  }
}

const EMPTY = new Uint8Array(0);

export const answerOf = (transport: HttpTransport, request: HttpRequest, body: Uint8Array = EMPTY): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    const { maxBodyBytes, handle } = transport.receive(request);
    handle(new InProcessContext(request, body.byteLength > maxBodyBytes ? null : body, resolve)).catch(reject);
  });

/** A call by features, judged like any other. */
export const callInProcess = async (transport: HttpTransport, call: InProcessCall): Promise<InProcessAnswer> => {
  const { method, path, query = "", headers, body, ip } = call;
  const answer = await answerOf(transport, { method, path, query, headers, repeated: new Set(), peer: ip }, body === undefined ? EMPTY : Buffer.from(body));
  const text = answer.body === null || typeof answer.body === "string" ? (answer.body ?? "") : Buffer.from(answer.body).toString("utf8");
  return { status: answer.status, headers: answer.headers, body: text };
};
