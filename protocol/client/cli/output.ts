// Prints what a command found: a table or lines for people, JSON for programs.
import type { Writable } from "node:stream";

export interface Printer {
  readonly json: boolean;
  /** A line for people; programs do not get it. */
  say(text: string): void;
  /** The answer of the command. */
  answer(record: unknown, lines: () => readonly string[]): void;
  table(rows: readonly unknown[], columns: readonly (readonly [title: string, cell: (row: never) => string])[]): void;
  /** One of many that come one after another. */
  item(record: unknown, line: string): void;
}

/** Text of others must not move the cursor or colour the screen. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;
export const plain = (text: string): string => text.replace(CONTROL, (found) => (found === "\t" ? "  " : "�"));

const padded = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, index) => cell.padEnd(widths[index] ?? 0))
    .join("  ")
    .trimEnd();

export const createPrinter = (stdout: Writable, stderr: Writable, json: boolean): Printer => {
  const line = (text: string): void => void stdout.write(`${text}\n`);
  return {
    json,
    say: (text) => void (json ? undefined : stderr.write(`${plain(text)}\n`)),
    answer: (record, lines) => (json ? line(JSON.stringify(record)) : lines().map(plain).forEach(line)),
    table: (rows, columns) => {
      if (json) return line(JSON.stringify(rows));
      const cells = [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, cell]) => plain(cell(row as never))))]; // as: the columns are of these rows
      const widths = columns.map((_, index) => Math.max(...cells.map((each) => each[index]?.length ?? 0)));
      for (const each of cells) line(padded(each, widths));
    },
    item: (record, text) => line(json ? JSON.stringify(record) : plain(text)),
  };
};
