// Reads a body and counts its bytes as they come. Call it before the first await, or bytes get lost.
import type { HttpResponse as UwsResponse } from "uWebSockets.js";
import type { LazyAbort } from "../../core/lifecycle/lazy-abort.ts";
import type { HttpRequest } from "../http/http-message.ts";

const EMPTY: Promise<Uint8Array> = Promise.resolve(new Uint8Array(0));

/** Resolves null as soon as the limit is passed; rejects when the peer goes away, so that nobody waits for the rest. */
export const readBody = (
  res: UwsResponse,
  request: HttpRequest,
  { limitBytes, gone }: { readonly limitBytes: number; readonly gone: LazyAbort },
): Promise<Uint8Array | null> => {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared === 0 && request.headers["transfer-encoding"] === undefined) return EMPTY;
  const body = new Promise<Uint8Array | null>((resolve, reject) => {
    gone.onAbort(() => reject(new Error("the peer went away before the end of its body")));
    const parts: Buffer[] = [];
    let size = 0;
    let over = declared > limitBytes;
    if (over) resolve(null);
    res.onData((chunk, isLast) => {
      if (over) return;
      size += chunk.byteLength;
      if (size > limitBytes) {
        over = true;
        parts.length = 0;
        resolve(null);
        return;
      }
      // The library frees the chunk after this callback: copy it.
      parts.push(Buffer.from(new Uint8Array(chunk)));
      if (isLast) resolve(parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, size));
    });
  });
  // Some answers do not wait for the body.
  body.catch(() => undefined);
  return body;
};
