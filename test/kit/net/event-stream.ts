// An event stream as a browser opens it, by fetch: it begins with a position, and its end can be awaited.

export interface OpenStream {
  /** Resolves with all that came, once the gateway has ended the stream. */
  readonly ended: Promise<string>;
  /** All that came until now. */
  seen(): string;
  close(): void;
}

/** Resolves once the stream has begun; throws what the gateway answers instead. */
export const openStream = async (
  url: string,
  given: { readonly headers?: Readonly<Record<string, string>>; readonly ticket?: string },
): Promise<OpenStream> => {
  const parameters = new URLSearchParams({
    input: "{}",
    ...(given.ticket === undefined ? {} : { connectionParams: JSON.stringify({ ticket: given.ticket }) }),
  });
  const stop = new AbortController();
  const response = await fetch(`${url}/trpc/live.watch?${parameters}`, { headers: { accept: "text/event-stream", ...given.headers }, signal: stop.signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (response.status !== 200 || reader === undefined) throw new Error(`the stream answers ${response.status}`);
  let text = "";
  const read = async (until: () => boolean): Promise<string> => {
    while (!until()) {
      const { done, value } = await reader.read();
      if (done) break;
      text += value;
    }
    return text;
  };
  await read(() => text.includes("stream.position") || text.includes("serialized-error"));
  if (text.includes("serialized-error")) throw new Error(`the stream was refused: ${text}`);
  const ended = read(() => false);
  ended.catch(() => undefined);
  return { ended, seen: () => text, close: () => stop.abort() };
};
