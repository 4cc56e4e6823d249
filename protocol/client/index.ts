// @mooring/client: the typed client for portals, with batching, retries and live streams.
import {
  createTRPCClient,
  httpBatchLink,
  httpSubscriptionLink,
  isTRPCClientError,
  retryLink,
  splitLink,
  type TRPCClient,
  type TRPCClientError,
} from "@trpc/client";
import type { AppRouter } from "./contract.ts";

export type * from "./contract.ts";

export interface MooringOptions {
  /** The gateway's public URL, such as `https://mooring.example.com`; "" means the page's own origin. */
  readonly url: string;
  /**
   * The user's access token, or an API key, which opens no live streams. The client calls a function before every request and every stream, so it can
   * refresh the token. Without a token the page acts in the browser's session: it has to be on the gateway's own origin.
   */
  readonly token?: string | (() => string | Promise<string>);
  /**
   * The tenant that calls are about, asked before every request. Without it the gateway takes the one that the person chose last, which another page of the
   * same browser may change.
   */
  readonly tenantId?: () => string | undefined;
  /** EventSource for live streams in runtimes that have none. In Node, pass the one of the npm package `eventsource`. */
  readonly EventSource?: new (
    url: string | URL,
  ) => object;
  /** `EventSource` sends the credential by itself, so streams need no ticket: for programs that act with an API key. */
  readonly streamsByHeader?: boolean;
  /** Called before the client repeats a query or opens a stream again, so the page can say why it waits. */
  readonly onRetry?: (error: MooringError, waitSeconds: number) => void;
}

export type Mooring = TRPCClient<AppRouter>;
export type MooringError = TRPCClientError<AppRouter>;

/** Narrows the error of a call. `error.data?.app.code` says why it failed; without `data` the gateway did not answer. */
export const isMooringError = (error: unknown): error is MooringError => isTRPCClientError<AppRouter>(error);

/** The gateway refuses more calls per request and longer URLs. */
const MAX_CALLS_PER_REQUEST = 20;
const MAX_URL_LENGTH = 8_000;

/** Scripts can read this cookie, and only scripts of the gateway's own pages can: its value in the header proves that such a page makes the call. */
const csrfHeader = (): Record<string, string> => {
  const [, value] = /(?:^|; )(?:__Host-)?mooring_csrf=([\w-]+)/.exec((globalThis as { document?: { cookie: string } }).document?.cookie ?? "") ?? [];
  return value === undefined ? {} : { "x-csrf-token": value };
};

const hex = (bytes: number): string => Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, "0")).join("");
/** Begins the trace in which a change is found with all that follows from it: its command, the delivery, the agent's work. */
const newTraceparent = (): string => `00-${hex(16)}-${hex(8)}-01`;

/** A ticket opens a stream and changes nothing. */
const isChange = ({ type, path }: { readonly type: string; readonly path: string }): boolean => type === "mutation" && path !== "general.streamTicket";

const MAX_QUERY_ATTEMPTS = 3;
/** A query that would have to wait longer fails at once, so the page can tell its user. */
const MAX_QUERY_WAIT_SECONDS = 10;

export const createMooring = ({ url, token, tenantId = () => undefined, EventSource: Source, streamsByHeader = false, onRetry }: MooringOptions): Mooring => {
  const endpoint = `${url.replace(/\/+$/, "")}/trpc`;
  const credential = async (): Promise<Record<string, string>> =>
    token === undefined ? csrfHeader() : { authorization: `Bearer ${typeof token === "string" ? token : await token()}` };
  const tenant = (): Record<string, string> => {
    const named = tenantId();
    return named === undefined ? {} : { "x-svc-tenant-id": named };
  };
  const canStream = (): boolean => (Source ?? globalThis.EventSource) !== undefined;
  const ticket = async (): Promise<{ ticket: string }> => {
    if (!canStream()) throw new Error("This runtime has no EventSource. Pass one to createMooring, for example from the npm package eventsource.");
    return { ticket: (await mooring.general.streamTicket.mutate({})).ticket };
  };

  let waitSeconds = 1;
  const mooring: Mooring = createTRPCClient<AppRouter>({
    links: [
      retryLink({
        retry: ({ op, error, attempts }) => {
          if (op.type === "mutation" || op.signal?.aborted === true) return false;
          const app = error.data?.app;
          waitSeconds = app?.retryAfter ?? 1;
          const mayPass = app === undefined || app.retryable;
          const repeats =
            op.type === "query"
              ? mayPass && attempts < MAX_QUERY_ATTEMPTS && waitSeconds <= MAX_QUERY_WAIT_SECONDS
              : // A ticket opens one stream. After a disconnect this fetches another and resumes after the last event.
                canStream() && (mayPass || app.details?.["reason"] === "ticket_invalid");
          if (repeats) onRetry?.(error, waitSeconds);
          return repeats;
        },
        retryDelayMs: () => 1_000 * waitSeconds * (0.5 + Math.random()),
      }),
      splitLink({
        condition: ({ type }) => type === "subscription",
        true: httpSubscriptionLink({
          url: endpoint,
          ...(streamsByHeader ? {} : { connectionParams: ticket }),
          ...(Source === undefined ? {} : { EventSource: Source as typeof EventSource }),
        }),
        false: httpBatchLink({
          url: endpoint,
          maxItems: MAX_CALLS_PER_REQUEST,
          maxURLLength: MAX_URL_LENGTH,
          headers: async ({ opList }) => ({
            ...(await credential()),
            ...tenant(),
            ...(opList.some(isChange) ? { traceparent: newTraceparent() } : {}),
          }),
        }),
      }),
    ],
  });
  return mooring;
};
