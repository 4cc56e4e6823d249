// A call of this gateway's own API without a socket: for what must be judged as a call is, with its credential, limits and permission.
import type { AppError } from "../errors.ts";

export interface InProcessCall {
  readonly method: string;
  /** With its prefix. */
  readonly path: string;
  readonly query?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly ip: string;
}
export interface InProcessAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
export type CallInProcess = (call: InProcessCall) => Promise<InProcessAnswer>;

/** The request that carries a call. */
export interface CallOrigin {
  readonly requestId: string;
  /** The prefix of the API at which it arrived. */
  readonly prefix: string;
  /** The shape of errors that its caller reads. */
  readonly shape: "a" | "b";
  /** As the connection's peer sent them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly peer: string;
}

/** The calls that one request carries. */
export interface NestedCalls {
  /** Whether a batch may contain the call. An unknown path may: its answer says that there is nothing. */
  isAllowed(method: string, path: string): boolean;
  /** Takes the way of a call over HTTP, with the credential of the request that carries it. */
  call(origin: CallOrigin, call: Omit<InProcessCall, "ip">): Promise<InProcessAnswer>;
  /** The answer to a call that is not made. */
  refuse(origin: CallOrigin, requestId: string, error: AppError): InProcessAnswer;
}
