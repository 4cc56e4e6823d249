// Answers without an envelope: a text of its own media type, whole or in pieces, or bytes in pieces.
import type { Plain } from "../../../protocol/index.ts";
import type { HttpResponse, HttpStream } from "../http/http-message.ts";

const headersOf = ({ type, filename }: Plain): Record<string, string> => ({
  "Content-Type": type,
  ...(filename === undefined ? {} : { "Content-Disposition": `attachment; filename="${filename}"` }),
});

type Pieces = AsyncIterable<string | Uint8Array>;

const encoder = new TextEncoder();
async function* encoded(pieces: Pieces): AsyncGenerator<Uint8Array> {
  // An empty chunk would be the end of the answer.
  for await (const piece of pieces) if (piece.length > 0) yield typeof piece === "string" ? encoder.encode(piece) : piece;
}

/** The answer with its pieces as bytes, once the first is there: a failure before it is answered as an error, and a later one breaks the answer off. */
export const beginPieces = async <A extends { readonly result: unknown }>(answer: A): Promise<A & { readonly result: AsyncIterable<Uint8Array> }> => {
  const rest = encoded(answer.result as Pieces); // as: what the contract's operations with pieces return
  let first: IteratorResult<Uint8Array> | null = await rest.next();
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    const one = first ?? (await rest.next());
    first = null;
    return one;
  };
  // No generator: one that nobody has begun to read would not end what it reads from.
  return { ...answer, result: { [Symbol.asyncIterator]: () => ({ next, return: () => rest.return(undefined) }) } };
};

export const renderPlain = (
  plain: Plain,
  result: string | AsyncIterable<Uint8Array>,
  head: Pick<HttpResponse, "status" | "headers" | "compress">,
): HttpResponse | HttpStream => {
  const own = head.headers["Content-Disposition"];
  const headers = { ...head.headers, ...headersOf(plain), ...(own === undefined ? {} : { "Content-Disposition": own }) };
  if (typeof result === "string") return { ...head, headers, body: result };
  return { ...head, headers, body: ReadableStream.from(result) as ReadableStream<Uint8Array>, whole: true };
};
