// A subscription over REST: server-sent events, one with each item. A refusal after the beginning is an event of the type `error`.
import { type Clock, isoText } from "../../core/clock.ts";
import { isAppError } from "../../core/errors.ts";
import type { Answer } from "../call/pipeline.ts";
import { errorBody } from "../rest/envelope.ts";
import type { HttpStream } from "./http-message.ts";
import type { RequestInfo } from "./request-info.ts";

export const EVENT_STREAM = "text/event-stream";

/** Proxies end connections on which nothing happens. */
const PING_MS = 15_000;

const encoder = new TextEncoder();
const eventOf = (data: unknown, type?: string): Uint8Array =>
  encoder.encode(`${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(data)}\n\n`);
const PING = encoder.encode(":\n\n");

/** The next item, or null when it takes too long for a silent connection. */
const within = async <T>(next: Promise<T>, ms: number): Promise<T | null> => {
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), ms);
    });
    return await Promise.race([next, late]);
  } finally {
    clearTimeout(timer);
  }
};

export interface RenderedEvents {
  readonly headers: HttpStream["headers"];
  readonly info: RequestInfo;
  readonly clock: Clock;
}

/** Rejects if the stream fails before its first item: the caller gets an ordinary answer then. */
export const renderEvents = async ({ result }: Answer, { headers, info, clock }: RenderedEvents): Promise<HttpStream> => {
  const iterator = (result as AsyncIterable<unknown>)[Symbol.asyncIterator](); // as: the result of a subscription
  const first = await iterator.next();
  async function* events(): AsyncGenerator<Uint8Array> {
    let next = Promise.resolve(first);
    try {
      for (;;) {
        const item = await within(next, PING_MS);
        if (item === null) {
          yield PING;
          continue;
        }
        if (item.done === true) return;
        yield eventOf(item.value);
        next = iterator.next();
        // Awaited in the next round; a reader who leaves before that never sees it fail.
        next.catch(() => undefined);
      }
    } catch (error) {
      if (!isAppError(error)) throw error;
      yield eventOf(errorBody(error, info, isoText(clock.now())), "error");
    } finally {
      await iterator.return?.();
    }
  }
  return { status: 200, headers: { ...headers, "Content-Type": EVENT_STREAM }, body: ReadableStream.from(events()) as ReadableStream<Uint8Array> };
};
