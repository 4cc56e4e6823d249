// The outbound client in the form of `fetch`, for libraries that speak their own protocol over it.
import { type Outbound, type OutboundCall, OutboundError } from "../../core/ports/outbound.ts";

export interface OutboundFetchOptions extends Required<Pick<OutboundCall, "owner" | "timeoutMs" | "maxBodyBytes">> {
  readonly outbound: Outbound;
}

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** As `fetch`, an answer with any status is one, and a call that was given up throws its signal's reason. Half an answer is none. */
export const createOutboundFetch =
  ({ outbound, ...bounds }: OutboundFetchOptions) =>
  async (url: string | URL | Request, { signal, ...init }: RequestInit = {}): Promise<Response> => {
    // It knows every form that a body may have, and the type of each.
    const request = new Request(url, init);
    const [method, body] = [request.method as OutboundCall["method"], new Uint8Array(await request.arrayBuffer())]; // as: an unknown method fails
    const given = { ...(body.length === 0 ? {} : { body }), ...(signal ? { signal } : {}), ...(method === undefined ? {} : { method }) };
    const answer = await outbound.send({ ...bounds, ...given, url: request.url, headers: Object.fromEntries(request.headers) }).catch((error: unknown) => {
      signal?.throwIfAborted();
      throw error;
    });
    if (answer.truncated) throw new OutboundError("TOO_LARGE", `the answer has more than ${bounds.maxBodyBytes} bytes`);
    return new Response(WITHOUT_BODY.has(answer.statusCode) ? null : new Uint8Array(answer.body), { status: answer.statusCode, headers: answer.headers });
  };
