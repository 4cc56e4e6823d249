// Answers without an envelope: a text of its own media type, whole or in pieces, or bytes in pieces.
import type { Plain } from "../../../protocol/index.ts";
import type { HttpResponse, HttpStream } from "../http/http-message.ts";

const headersOf = ({ type, filename }: Plain): Record<string, string> => ({
  "Content-Type": type,
  ...(filename === undefined ? {} : { "Content-Disposition": `attachment; filename="${filename}"` }),
});

const encoder = new TextEncoder();
async function* encoded(pieces: AsyncIterable<string | Uint8Array>): AsyncIterable<Uint8Array> {
  // An empty chunk would be the end of the answer.
  for await (const piece of pieces) if (piece.length > 0) yield typeof piece === "string" ? encoder.encode(piece) : piece;
}

export const renderPlain = (
  plain: Plain,
  result: string | AsyncIterable<string | Uint8Array>,
  head: Pick<HttpResponse, "status" | "headers" | "compress">,
): HttpResponse | HttpStream => {
  const own = head.headers["Content-Disposition"];
  const headers = { ...head.headers, ...headersOf(plain), ...(own === undefined ? {} : { "Content-Disposition": own }) };
  if (typeof result === "string") return { ...head, headers, body: result };
  return { ...head, headers, body: ReadableStream.from(encoded(result)) as ReadableStream<Uint8Array>, whole: true };
};
