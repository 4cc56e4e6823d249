// A bounded queue of log lines between the chunks of an agent and one viewer. Of a viewer that is too slow it drops the oldest lines and counts them.
import type { LogBatch, LogLine, LogNotice } from "../../../../protocol/index.ts";

export interface LineBounds {
  readonly bufferedLines: number;
  readonly bufferedCharacters: number;
}

export interface LineBuffer extends AsyncIterable<LogBatch> {
  /** `skipped`: lines that are missing before these. */
  push(lines: readonly LogLine[], skipped?: number): void;
  notice(notice: LogNotice | null): void;
  /** Ends the stream once what waits has been read. */
  end(): void;
}

interface Waiting {
  readonly line: LogLine;
  /** Lines that are missing before it. */
  readonly gap: number;
}

/** The most lines of one batch. */
const MAX_LINES = 200;

export const createLineBuffer = ({ bufferedLines, bufferedCharacters }: LineBounds): LineBuffer => {
  let waiting: Waiting[] = [];
  let characters = 0;
  /** Missing before the first that waits. */
  let missing = 0;
  let notice: LogNotice | null = null;
  let isNews = false;
  let isOver = false;
  let wake = (): void => undefined;

  const drop = (): void => {
    let dropped = 0;
    while (waiting.length - dropped > bufferedLines || characters > bufferedCharacters) {
      const { line, gap } = waiting[dropped++] as Waiting; // as: as long as there are characters, a line waits
      characters -= line.text.length;
      missing += gap + 1;
    }
    if (dropped > 0) waiting = waiting.slice(dropped);
  };
  const take = (): LogBatch => {
    const skipped = missing + (waiting[0]?.gap ?? 0);
    const next = waiting.findIndex(({ gap }, at) => at === MAX_LINES || (at > 0 && gap > 0));
    const lines = waiting.splice(0, next < 0 ? waiting.length : next).map(({ line }) => line);
    for (const { text } of lines) characters -= text.length;
    missing = 0;
    isNews = false;
    return { lines, skipped, notice };
  };

  return {
    push: (lines, skipped = 0) => {
      if (isOver) return;
      if (lines.length === 0) missing += skipped;
      for (const [at, line] of lines.entries()) {
        waiting.push({ line, gap: at === 0 ? skipped : 0 });
        characters += line.text.length;
      }
      drop();
      wake();
    },
    notice: (next) => {
      if (notice === next) return;
      notice = next;
      isNews = true;
      wake();
    },
    end: () => {
      isOver = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length > 0 || missing > 0 || isNews) yield take();
        if (isOver) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
};
