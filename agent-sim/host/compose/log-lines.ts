// The lines of `docker compose logs --timestamps --no-log-prefix` as a host gives them: the time, then what the app has said, without terminal codes.
import { stripVTControlCharacters } from "node:util";
import { pause, type Time } from "../../agent/index.ts";

const TIMED = /^(\d{4}-\d\d-\d\dT\S+Z) /;
/** Between two tries; doubled as long as there is nothing to read. */
const AGAIN_MS = 1_000;
const MAX_AGAIN_MS = 10_000;

/** What Compose says itself, of a container. */
const ENDED = /^\S+ exited with code \d+(?: \(restarting\))?$/;

const timeOf = (line: string): string => TIMED.exec(line)?.[1] ?? "";

const plainLines = (line: string): readonly string[] => [stripVTControlCharacters(line)].filter((plain) => plain !== "");

/** In the order of their times: Compose prints one container after the other. A line without a time belongs to the one before. */
export const appLines = (output: string): readonly string[] => {
  let time = "";
  return output
    .split("\n")
    .flatMap(plainLines)
    .filter((line) => !ENDED.test(line))
    .map((line) => {
      time = timeOf(line) || time;
      return { time, line };
    })
    .sort((one, other) => (one.time === other.time ? 0 : one.time < other.time ? -1 : 1))
    .map(({ line }) => line);
};

async function* plainLinesOf(source: AsyncIterable<string>): AsyncGenerator<string, void> {
  for await (const line of source) yield* plainLines(line);
}

export interface Following {
  /** Follows the containers that there are, from this time on (null: from now on). Ends with them. */
  readonly open: (since: string | null) => AsyncIterable<string>;
  readonly time: Time;
  readonly signal: AbortSignal;
  readonly isOver: () => boolean;
}

/**
 * An update or a restart replaces the containers, so it follows the next ones from the last line on, which comes again. Compose itself goes on with a
 * container that has been killed, but without the first lines of its next run.
 */
export async function* followContainers({ open, time, signal, isOver }: Following): AsyncGenerator<string, void> {
  let last: string | null = null;
  let againMs = AGAIN_MS;
  while (!signal.aborted && !isOver()) {
    const since: string = last ?? new Date(time.wallMs()).toISOString();
    for await (const line of plainLinesOf(open(last))) {
      if (ENDED.test(line)) break;
      const said = timeOf(line);
      if (said !== "" && last !== null && said <= last) continue;
      [last, againMs] = [said || last, AGAIN_MS];
      yield line;
    }
    last ??= since;
    await pause(time, againMs, signal);
    againMs = Math.min(MAX_AGAIN_MS, 2 * againMs);
  }
}
