// Says in one sentence why a listener could not open, for the operator who started the process.
const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    EADDRINUSE: "the port is taken.",
    EADDRNOTAVAIL: "this machine does not have that address.",
    EACCES: "this user may not take that port.",
    ENOTFOUND: "that host name has no address.",
  }),
);
/** uWebSockets.js gives no reason. */
const UNKNOWN = "is the port taken, or the address another machine's?";

export interface ListenAt {
  readonly host: string;
  readonly port: number;
  /** Prefix of the settings HOST and PORT. */
  readonly prefix: "" | "INTERNAL_" | "EDGE_" | "EDGE_HTTP_";
}

export class ListenError extends Error {
  override readonly name = "ListenError";
  constructor({ host, port, prefix }: ListenAt, code?: string) {
    super(
      `cannot listen on ${host}:${port}: ${code === undefined ? UNKNOWN : (REASONS.get(code) ?? `${code}.`)} Set ${prefix}PORT (0: any free one) or ${prefix === "EDGE_HTTP_" ? "EDGE_" : prefix}HOST`,
    );
  }
}
