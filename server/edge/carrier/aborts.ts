// Ends streams of a carrier without RST_STREAM: nghttp2 ends a session with some thousand resets, for everybody. A line on the control stream tells the
// agent; only a stream that is still there after a while is reset, and resets are paced.
import type { ClientHttp2Stream } from "node:http2";
import type { Writable } from "node:stream";
import { abortLine } from "../../../protocol/index.ts";

const RESET_AFTER_MS = 5_000;
const RESETS_PER_SECOND = 20;
const CANCEL = 8;

export interface Aborts {
  abort(stream: ClientHttp2Stream): void;
  close(): void;
}

export const createAborts = (control: Writable, settings: { readonly byReset?: boolean } = {}): Aborts => {
  const waiting: ClientHttp2Stream[] = [];
  const timers = new Set<NodeJS.Timeout>();
  let pacing: NodeJS.Timeout | null = null;
  const resetNext = (): void => {
    let stream = waiting.shift();
    while (stream?.closed) stream = waiting.shift();
    if (stream !== undefined) stream.close(CANCEL);
    if (waiting.length > 0 || pacing === null) return;
    clearInterval(pacing);
    pacing = null;
  };
  const reset = (stream: ClientHttp2Stream): void => {
    if (stream.closed) return;
    waiting.push(stream);
    pacing ??= setInterval(resetNext, 1_000 / RESETS_PER_SECOND);
  };
  return {
    abort: (stream) => {
      if (stream.closed || stream.destroyed) return;
      if (settings.byReset === true) return stream.close(CANCEL);
      stream.resume();
      if (stream.id !== undefined && control.writable) control.write(abortLine(stream.id));
      stream.end();
      const timer = setTimeout(() => {
        timers.delete(timer);
        reset(stream);
      }, RESET_AFTER_MS);
      timers.add(timer);
      stream.once("close", () => {
        clearTimeout(timer);
        timers.delete(timer);
      });
    },
    close: () => {
      for (const timer of timers) clearTimeout(timer);
      if (pacing !== null) clearInterval(pacing);
    },
  };
};
