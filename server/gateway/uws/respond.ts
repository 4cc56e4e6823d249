// Writes an answer, in one cork, and streams one with back-pressure. Nothing else calls the library's write methods for HTTP.

import type { HttpResponse as UwsResponse } from "uWebSockets.js";
import { STATUS_CODES } from "node:http";
import type { LazyAbort } from "../../core/lifecycle/lazy-abort.ts";
import type { HttpResponse, HttpStream } from "../http/http-message.ts";

const LINES: ReadonlyMap<number, string> = new Map(Object.entries(STATUS_CODES).map(([status, words]) => [Number(status), `${status} ${words}`]));
const statusLine = (status: number): string => LINES.get(status) ?? `${status} Status`;
const NO_BODY: ReadonlySet<number> = new Set([204, 304]);

// `Date` is the library's own; a second one would make both unreadable.
const writeHead = (res: UwsResponse, { status, headers }: Pick<HttpResponse, "status" | "headers">): void => {
  // The library writes 200 unless told otherwise.
  if (status !== 200) res.writeStatus(statusLine(status));
  const [first, ...others] = Object.keys(headers);
  if (first === undefined) return;
  // The library concatenates name, colon and value unchecked, so all headers fit into one call; a call costs as much as the header it carries.
  let text = headers[first] ?? "";
  for (const name of others) text += `\r\n${name}: ${headers[name] ?? ""}`;
  res.writeHeader(first, text);
};

/**
 * Ends an answer that has no body; `length` is what GET would carry, null where a length has no meaning.
 * The library writes a Content-Length whenever it is handed any first argument, even undefined, and considers an answer with a length
 * unfinished until that many bytes have followed: the next request on the connection would be cut off. So the header is ours,
 * except on the last answer of a connection, which only the library can end.
 */
const endBare = (res: UwsResponse, length: number | null, close: boolean): void => {
  if (close) {
    res.endWithoutBody(length ?? 0, true);
    return;
  }
  if (length !== null) res.writeHeader("Content-Length", String(length));
  res.endWithoutBody();
};

/** Call it only while the peer is there. */
export const writeResponse = (res: UwsResponse, response: HttpResponse, isHead: boolean): void => {
  res.cork(() => {
    writeHead(res, response);
    const { body, cookies, close = false } = response;
    if (cookies !== undefined) for (const cookie of cookies) res.writeHeader("Set-Cookie", cookie);
    if (NO_BODY.has(response.status)) endBare(res, null, close);
    else if (isHead) endBare(res, response.length ?? Buffer.byteLength(body ?? ""), close);
    else res.end(body ?? "", close);
  });
};

/** Ends when the stream or its time ends; a slow reader holds the producer back. Nothing is written once the peer is gone. */
export const writeStream = async (
  res: UwsResponse,
  response: HttpStream,
  { gone, ending }: { readonly gone: LazyAbort; readonly ending: AbortSignal },
): Promise<void> => {
  const reader = response.body.getReader();
  const stop = () => void reader.cancel().catch(() => undefined);
  ending.addEventListener("abort", stop, { once: true });
  if (!gone.aborted) res.cork(() => writeHead(res, response));
  let complete = response.whole !== true;
  try {
    while (!ending.aborted) {
      const { done, value } = await reader.read();
      if (done) complete = true;
      if (done || ending.aborted) break;
      const accepted = { now: true };
      res.cork(() => {
        accepted.now = res.write(value);
      });
      if (!accepted.now) await writable(res, ending);
    }
  } finally {
    ending.removeEventListener("abort", stop);
    if (ending.aborted) stop();
    // No `close` here, although the connection ends with the stream: the library would write that header among the chunks.
    if (!gone.aborted) res.cork(() => void (complete ? res.end() : res.close()));
  }
};

const writable = (res: UwsResponse, ending: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const go = () => {
      ending.removeEventListener("abort", go);
      resolve();
    };
    ending.addEventListener("abort", go, { once: true });
    res.onWritable(() => {
      go();
      return true;
    });
  });
