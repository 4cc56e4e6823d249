// A call without a socket: the gateway's HTTP transport gets the request in this process, as a connection would hand it over, and everything behind
// it is the gateway's own. The walls make tens of thousands of calls so; test/contract/operations.test.ts makes each operation's over HTTP.
import { createLazyAbort } from "../../../server/core/lifecycle/lazy-abort.ts";
import type { HttpRequest, HttpResponse, HttpStream } from "../../../server/gateway/http/http-message.ts";
import { type HttpTransport, RequestContext } from "../../../server/gateway/http/request-context.ts";

export interface Sent {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}
export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const headersOf = ({ headers, cookies = [] }: Pick<HttpResponse, "headers" | "cookies">): Headers => {
  const all = new Headers({ ...headers });
  for (const cookie of cookies) all.append("set-cookie", cookie);
  return all;
};
const textOf = (body: HttpResponse["body"]): string => (typeof body === "string" ? body : Buffer.from(body ?? []).toString("utf8"));

class InProcessContext extends RequestContext {
  readonly request: HttpRequest;
  readonly gone = createLazyAbort();
  readonly ending = createLazyAbort();
  readonly body: Promise<Uint8Array | null>;
  readonly #receive: (received: Received) => void;

  constructor(request: HttpRequest, body: Uint8Array | null, receive: (received: Received) => void) {
    super();
    this.request = request;
    this.body = Promise.resolve(body);
    this.#receive = receive;
  }

  protected override write(response: HttpResponse): void {
    const isBare = this.request.method === "HEAD" || response.status === 204 || response.status === 304;
    this.#receive({ status: response.status, headers: headersOf(response), text: isBare ? "" : textOf(response.body) });
  }

  protected override async writeStream({ status, headers, body }: HttpStream): Promise<void> {
    this.#receive({ status, headers: headersOf({ headers }), text: await new Response(body).text() });
  }
}

const requestOf = ({ method, path, headers, body }: Sent, bytes: Uint8Array): HttpRequest => {
  // A client writes a path so, too: it encodes what a URL cannot contain.
  const { pathname, search } = new URL(path, "http://gateway");
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const length = body.length === 0 ? {} : { "content-length": String(bytes.byteLength) };
  // Without accept-encoding: compression has tests of its own.
  return {
    method,
    path: pathname,
    query: search.slice(1),
    headers: { host: "gateway", accept: "*/*", ...length, ...lower },
    repeated: new Set(),
    peer: "127.0.0.1",
  };
};

export const callInProcess = (transport: HttpTransport, sent: Sent): Promise<Received> =>
  new Promise((resolve, reject) => {
    const bytes = typeof sent.body === "string" ? Buffer.from(sent.body) : sent.body;
    const request = requestOf(sent, bytes);
    const reception = transport.receive(request);
    const body = bytes.byteLength > reception.maxBodyBytes ? null : bytes;
    reception.handle(new InProcessContext(request, body, resolve)).catch(reject);
  });
