// Carries a request to the service and its answer back: bytes go on as they come, whatever their type, as fast as the slower side takes them.
import { type ClientRequest, type IncomingMessage, type RequestOptions, request as requestOver, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { DialFailure } from "../../../core/ports/carriers.ts";
import type { EdgeError, EdgeRequest, EdgeResponse } from "../../../core/ports/edge.ts";
import { BAD_TARGET, BROKEN, dialErrorOf, TOO_SLOW } from "./failures.ts";
import { headersObject, toService, toVisitor } from "./headers.ts";
import { joinStreams } from "./join-streams.ts";
import type { Pool, ServedTunnel } from "./pool.ts";

export interface ForwardDeps {
  readonly pool: Pool;
  readonly refuse: (to: { readonly request: EdgeRequest; readonly response: EdgeResponse }, error: EdgeError) => void;
  readonly refuseSocket: (to: { readonly request: EdgeRequest; readonly socket: Duplex }, error: EdgeError) => void;
  readonly settings: { readonly answerMs: number; readonly idleMs: number; readonly upgradedIdleMs: number };
}

export interface Visit extends ServedTunnel {
  readonly request: EdgeRequest;
  /** What the service gets as Host. */
  readonly host: string;
  readonly cookie: string;
  /** Null: the edge's own times. */
  readonly idleMs: number | null;
  readonly passed: (bytesIn: number, bytesOut: number) => void;
}

const hasBody = ({ message }: EdgeRequest): boolean =>
  message.httpVersionMajor === 2
    ? message.readable && message.headers["content-length"] !== "0" && message.method !== "GET" && message.method !== "HEAD"
    : message.headers["transfer-encoding"] !== undefined || Number(message.headers["content-length"] ?? 0) > 0;

const errorOf = (error: unknown): EdgeError => (error instanceof DialFailure ? dialErrorOf(error.reason) : BROKEN);

const optionsOf = ({ request, tunnelId, passed: _, idleMs: _idleMs, ...visit }: Visit, more: readonly string[] = []): RequestOptions => ({
  method: request.method,
  path: `${request.path}${request.query === "" ? "" : `?${request.query}`}`,
  host: tunnelId,
  setHost: false,
  headers: [...toService({ request, ...visit }), ...more] as unknown as NonNullable<RequestOptions["headers"]>, // as: the types of Node 20 lack the flat form
});

export const createForward = ({ pool, refuse, refuseSocket, settings }: ForwardDeps) => {
  const answer = (visit: Visit, response: EdgeResponse, from: IncomingMessage): void => {
    const { request } = visit;
    const headers = toVisitor(from.rawHeaders, request.host);
    const status = from.statusCode ?? 502;
    // Without the first bytes of a body node:http would keep the head to itself.
    if (response instanceof ServerResponse) response.writeHead(status, from.statusMessage ?? "", headers).flushHeaders();
    else response.writeHead(status, headersObject(headers));
    const idle = setTimeout(() => from.destroy(), visit.idleMs ?? settings.idleMs);
    from.on("data", ({ length }: Buffer) => {
      idle.refresh();
      visit.passed(0, length);
    });
    from.on("close", () => {
      clearTimeout(idle);
      // Half an answer must not look like a whole one.
      if (!from.complete) response.destroy();
    });
    from.pipe(response);
  };

  const send = (visit: Visit, response: EdgeResponse, isRetry: boolean): void => {
    const { request } = visit;
    const withBody = hasBody(request);
    const chunked = withBody && request.message.headers["content-length"] === undefined ? ["Transfer-Encoding", "chunked"] : [];
    const connection = isRetry ? { createConnection: connectionOf(visit) } : { agent: pool.agentOf(visit) };
    let upstream: ClientRequest;
    try {
      upstream = requestOver({ ...optionsOf(visit, chunked), ...connection });
    } catch {
      refuse({ request, response }, BAD_TARGET);
      return;
    }
    let answered = false;
    const fail = (error: EdgeError): void => {
      if (answered) return;
      answered = true;
      clearTimeout(late);
      upstream.destroy();
      if (response.headersSent) response.destroy();
      else refuse({ request, response }, error);
    };
    const late = setTimeout(() => fail(TOO_SLOW), settings.answerMs);
    upstream.on("response", (from) => {
      if (answered) return void from.destroy();
      answered = true;
      clearTimeout(late);
      answer(visit, response, from);
    });
    upstream.on("error", (error) => {
      // The service may end a connection in the moment in which it is used again.
      if (!answered && !withBody && !isRetry && upstream.reusedSocket && !(error instanceof DialFailure)) {
        answered = true;
        clearTimeout(late);
        return send(visit, response, true);
      }
      return fail(errorOf(error));
    });
    response.once("close", () => {
      clearTimeout(late);
      if (!response.writableFinished) upstream.destroy();
    });
    if (withBody) {
      request.message.on("data", ({ length }: Buffer) => {
        late.refresh();
        visit.passed(length, 0);
      });
      request.message.on("aborted", () => upstream.destroy());
      request.message.pipe(upstream);
    } else upstream.end();
  };

  /** As `http.request` wants it: the answer comes by its callback. */
  const connectionOf = (visit: Visit) => ((_options: object, done: (error: Error | null, stream?: Duplex) => void) => pool.connectTo(visit, done)) as never;

  const upgrade = (visit: Visit, socket: Duplex, head: Buffer): void => {
    const { request } = visit;
    const wanted = ["Connection", "Upgrade", "Upgrade", request.message.headers.upgrade ?? "websocket"];
    const upstream = requestOver({ ...optionsOf(visit, wanted), createConnection: connectionOf(visit) });
    const late = setTimeout(() => upstream.destroy(new DialFailure("timeout")), settings.answerMs);
    socket.once("close", () => upstream.destroy());
    upstream.on("error", (error) => {
      clearTimeout(late);
      refuseSocket({ request, socket }, errorOf(error));
    });
    upstream.on("response", (from) => {
      clearTimeout(late);
      // The service declines: the connection ends with its answer, because nobody would judge what follows.
      socket.write(headOf(from, [...toVisitor(from.rawHeaders, request.host), "Connection", "close"]));
      from.pipe(socket);
    });
    upstream.on("upgrade", (from, stream: Duplex, first) => {
      clearTimeout(late);
      socket.write(headOf(from, toVisitor(from.rawHeaders, request.host, new Set(["connection", "upgrade"]))));
      if (first.length > 0) socket.write(first);
      if (head.length > 0) stream.write(head);
      joinStreams(socket, stream, { idleMs: visit.idleMs ?? settings.upgradedIdleMs, passed: visit.passed });
    });
    upstream.end();
  };
  return { send: (visit: Visit, response: EdgeResponse): void => send(visit, response, false), upgrade };
};

const headOf = ({ statusCode, statusMessage }: IncomingMessage, headers: readonly string[]): string => {
  const lines: string[] = [`HTTP/1.1 ${statusCode} ${statusMessage}`];
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
};
