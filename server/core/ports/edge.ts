// What features serve on the edge, the listener that carries bytes: visitors of tunnels and domains, carriers of agents, backup repositories, challenges
// of a certificate authority. A feature returns an `EdgePart`; the edge asks all parts in the order of the features.
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Duplex } from "node:stream";
import type { SecureContext } from "node:tls";

/** Requests of HTTP/1.1 and HTTP/2 alike; node:http2 offers the interface of node:http. */
export type EdgeMessage = IncomingMessage | Http2ServerRequest;
export type EdgeResponse = ServerResponse | Http2ServerResponse;

/** The visitor has gone while something was looked up: `close` has been told, and is not told again. */
export const hasLeft = (response: EdgeResponse): boolean => (response instanceof ServerResponse ? response.destroyed : response.stream.destroyed);

export interface EdgeRequest {
  readonly message: EdgeMessage;
  /** Upper case. */
  readonly method: string;
  /** The name that the visitor asked for: in lower case, without port and final dot. */
  readonly host: string;
  /** The host with its port, as sent. */
  readonly authority: string;
  /** Path as sent, undecoded, without the query. */
  readonly path: string;
  /** Query as sent, without "?". */
  readonly query: string;
  /** The visitor's address, behind TRUSTED_PROXIES. */
  readonly ip: string;
  /** The visitor speaks TLS, to us or to a trusted proxy. */
  readonly secure: boolean;
  /** A trusted proxy sent it, so its forwarding headers may stay. */
  readonly fromProxy: boolean;
  readonly requestId: string;
}

export interface EdgeHandler {
  /** Answers the request. False, before anything is written: not mine. A rejection becomes a 502. */
  handle(request: EdgeRequest, response: EdgeResponse): unknown;
  /** Takes the socket of a request with `Upgrade`; without this such a request gets 426. `head`: what the visitor has sent already. */
  upgrade?(request: EdgeRequest, socket: Duplex, head: Buffer): unknown;
}

export interface EdgeMount {
  /** Begins and ends with a slash, as `/restic/`, or is one whole path. */
  readonly prefix: string;
  readonly handler: EdgeHandler;
  /** Served on every host, before tunnels and domains are asked, and on EDGE_HTTP_PORT without a redirect to https. */
  readonly everywhere?: true;
}

export interface EdgePart {
  readonly mounts?: readonly EdgeMount[];
  /** Who serves this host name; null: not mine. It is asked for every request, so it answers from memory. */
  readonly hostOf?: (host: string) => EdgeHandler | null | Promise<EdgeHandler | null>;
  /** Null: unknown, then the next part or the certificate of EDGE_TLS_CERT_FILE answers. With this the edge speaks TLS. */
  /** The node drains: connections that last move to another one. */
  readonly leave?: () => void;
  readonly certificateFor?: (serverName: string) => SecureContext | null | Promise<SecureContext | null>;
}

/** The page of an error, also for other parts of the edge. */
export interface EdgePages {
  refuse(to: { readonly request: EdgeRequest; readonly response: EdgeResponse }, error: EdgeError): void;
  /** The same for a socket whose upgrade is refused. */
  refuseSocket(to: { readonly request: EdgeRequest; readonly socket: Duplex }, error: EdgeError): void;
}

export interface EdgeError {
  readonly status: number;
  readonly code: string;
  /** A sentence for the visitor. */
  readonly message: string;
  /** What only a member may know. */
  readonly reason?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}
