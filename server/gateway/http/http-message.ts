// An HTTP request and its answer, free of the library underneath.

export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** Path as sent, undecoded, without the query. */
  readonly path: string;
  /** Query as sent, without "?". */
  readonly query: string;
  /** Names in lower case; several lines of one name are joined by commas, as one list. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers that may have one value only and came more than once; request-head.ts refuses such a request. */
  readonly repeated: ReadonlySet<string>;
  /** Address of the connection's peer. Read it before the first await: it is empty once the peer has disconnected, unless somebody read it before. */
  readonly peer: string;
}

export type HttpHeaders = Readonly<Record<string, string>>;

export interface HttpResponse {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: string | Uint8Array | null;
  /** The bytes that GET would carry, in an answer to HEAD that has no body to measure. */
  readonly length?: number;
  /** Values of Set-Cookie, which needs a line for each. */
  readonly cookies?: readonly string[] | undefined;
  /** Close the connection afterwards: the rest of the request is not wanted. */
  readonly close?: boolean;
  /** Callers who accept it may get it compressed: it has no secret. */
  readonly compress?: boolean;
}

/** A body that comes in parts, for event streams. */
export interface HttpStream {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: ReadableStream<Uint8Array>;
  /** Part of it is worth nothing: when it fails, the connection breaks off instead of ending the answer. */
  readonly whole?: true;
}
