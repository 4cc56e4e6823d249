// What a command of the command line is: its words, its options, and what it does with them.
import type { ParseArgsConfig } from "node:util";
import type { Time } from "../../kit/timers.ts";
import type { Mooring } from "../index.ts";
import type { Printer } from "./output.ts";

export interface Option {
  /** The word for its value; none for a switch. */
  readonly value?: string;
  readonly short?: string;
  readonly about: string;
}
export type Given = Readonly<Record<string, string | boolean | undefined>>;

export interface CliCall {
  readonly words: readonly string[];
  readonly options: Given;
  readonly output: Printer;
  readonly time: Pick<Time, "after" | "elapsedMs">;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Fires when the person presses Ctrl-C. */
  readonly signal: AbortSignal;
  /** Reads a line that nobody should see. */
  readonly ask: (question: string) => Promise<string>;
  /** The gateway, by the stored credentials. */
  readonly gateway: () => Promise<Mooring>;
}

export interface CliCommand {
  /** Such as `rollout start`. */
  readonly name: string;
  /** The words after it: `DEVICE`, `[PAYLOAD]`. */
  readonly words: readonly string[];
  readonly about: string;
  readonly options: Readonly<Record<string, Option>>;
  /** Resolves with what the process exits with. */
  readonly run: (call: CliCall) => Promise<number>;
}

export const DONE = 0;
export const FAILED = 1;
export const WRONG_USE = 2;

export const EVERYWHERE: Readonly<Record<string, Option>> = {
  json: { about: "Print JSON: one document, or a line for each item of what goes on." },
  help: { short: "h", about: "Show this help." },
};

/** For `parseArgs` of Node. */
export const parsed = (options: Readonly<Record<string, Option>>): NonNullable<ParseArgsConfig["options"]> =>
  Object.fromEntries(
    Object.entries({ ...options, ...EVERYWHERE }).map(([name, { value, short }]) => [
      name,
      { type: value === undefined ? ("boolean" as const) : ("string" as const), ...(short === undefined ? {} : { short }) },
    ]),
  );

export const usageOf = ({ name, words, options }: CliCommand): string =>
  ["mooring", name, ...words, ...Object.entries(options).map(([option, { value }]) => `[--${option}${value === undefined ? "" : ` ${value}`}]`)].join(" ");
