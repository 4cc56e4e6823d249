// Writes the lines of a log several at a time: under load each write costs as much as all else of a line.
// A lone line goes at once, and those that follow it within a moment go together.

import { symbols } from "pino";

export interface Output {
  write(text: string): unknown;
}

export interface GatheredLines extends Output {
  /** Writes what waits. */
  flush(): void;
}

/** A killed process loses what came so late, but no warning and no error. */
const GATHER_MS = 20;
/** A pipe takes so much as one piece, so that the lines of several workers do not mix. */
const MAX_PIECE = 4_096;
const WARN = 40;

/** For pino, which sets `lastLevel` before it hands over a line of that level. */
class Gathering implements GatheredLines {
  readonly [symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  readonly #output: Output;
  #waiting = "";
  #timer: NodeJS.Timeout | null = null;

  constructor(output: Output) {
    this.#output = output;
  }

  write(line: string): void {
    if (this.#waiting.length + line.length > MAX_PIECE) this.flush();
    this.#waiting += line;
    if (this.#timer === null) {
      this.flush();
      this.#timer = setTimeout(() => this.#look(), GATHER_MS);
      this.#timer.unref();
    } else if (this.lastLevel >= WARN) this.flush();
  }

  flush(): void {
    if (this.#waiting === "") return;
    const text = this.#waiting;
    this.#waiting = "";
    this.#output.write(text);
  }

  #look(): void {
    const isQuiet = this.#waiting === "";
    this.flush();
    if (isQuiet) this.#timer = null;
    else this.#timer?.refresh();
  }
}

/** `output` writes before it returns. */
export const gatherLines = (output: Output): GatheredLines => new Gathering(output);
