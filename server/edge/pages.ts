// What the edge itself answers: a page for browsers, JSON for programs, with a code and the request's id.
import { STATUS_CODES } from "node:http";
import type { EdgeError, EdgePages, EdgeRequest } from "../core/ports/edge.ts";

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
]);
const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => ESCAPES.get(sign) ?? "");

/** No script, nothing from elsewhere, in no frame. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
const STYLE = "body{font:16px/1.5 system-ui,sans-serif;margin:12vh auto;max-width:34rem;padding:0 1rem;color-scheme:light dark}code{opacity:.7}";

const pageOf = ({ status, code, message, reason }: EdgeError, requestId: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${status} ${escaped(STATUS_CODES[status] ?? "")}</title><style>${STYLE}</style></head>` +
  `<body><h1>${escaped(message)}</h1>${reason === undefined ? "" : `<p>${escaped(reason)}</p>`}<p><code>${status} ${escaped(code)} · ${escaped(requestId)}</code></p></body></html>\n`;

const wantsHtml = (accept: string | undefined): boolean => accept?.includes("text/html") ?? false;

const bodyOf = (error: EdgeError, requestId: string, accept: string | undefined): readonly [type: string, body: string] => {
  if (wantsHtml(accept)) return ["text/html; charset=utf-8", pageOf(error, requestId)];
  const { code, message, reason } = error;
  return ["application/json; charset=utf-8", `${JSON.stringify({ success: false, error: { code, message, reason }, code, requestId })}\n`];
};

const headersOf = (type: string, body: string, { headers }: EdgeError, requestId: string): Record<string, string> => ({
  ...headers,
  "Content-Type": type,
  "Content-Length": String(Buffer.byteLength(body)),
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": POLICY,
  "X-Request-Id": requestId,
});

/** An answer for a socket that HTTP has let go. */
export const rawResponse = ({
  status,
  headers,
  body,
}: {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}): string => {
  const all = { ...headers, "Content-Length": String(Buffer.byteLength(body)), Connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n${body}`;
};

/** The same for an error. */
export const rawAnswer = (error: EdgeError, request: Pick<EdgeRequest, "requestId"> & { readonly accept?: string | undefined }): string => {
  const [type, body] = bodyOf(error, request.requestId, request.accept);
  return rawResponse({ status: error.status, headers: headersOf(type, body, error, request.requestId), body });
};

export const edgePages: EdgePages = {
  refuse: ({ request, response }, error) => {
    if (response.headersSent || response.writableEnded || response.destroyed) return;
    const [type, body] = bodyOf(error, request.requestId, request.message.headers.accept);
    response.writeHead(error.status, headersOf(type, body, error, request.requestId));
    response.end(request.method === "HEAD" ? "" : body);
    // The rest of the body is not wanted, and a visitor who still sends it would fill the connection.
    request.message.resume();
  },
  refuseSocket: ({ request, socket }, error) => {
    if (socket.destroyed || !socket.writable) return;
    socket.end(rawAnswer(error, { requestId: request.requestId, accept: request.message.headers.accept }));
  },
};
