// Answers without an envelope: a text of its own media type, whole or in pieces.
import type { Plain } from "../../../protocol/index.ts";
import type { HttpResponse, HttpStream } from "../http/http-message.ts";

const headersOf = ({ type, filename }: Plain): Record<string, string> => ({
  "Content-Type": type,
  ...(filename === undefined ? {} : { "Content-Disposition": `attachment; filename="${filename}"` }),
});

const encoder = new TextEncoder();
async function* encoded(pieces: AsyncIterable<string>): AsyncIterable<Uint8Array> {
  // An empty chunk would be the end of the answer.
  for await (const piece of pieces) if (piece !== "") yield encoder.encode(piece);
}

export const renderPlain = (
  plain: Plain,
  result: string | AsyncIterable<string>,
  head: Pick<HttpResponse, "status" | "headers" | "compress">,
): HttpResponse | HttpStream => {
  const headers = { ...head.headers, ...headersOf(plain) };
  if (typeof result === "string") return { ...head, headers, body: result };
  return { ...head, headers, body: ReadableStream.from(encoded(result)) as ReadableStream<Uint8Array>, whole: true };
};
