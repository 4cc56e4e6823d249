// Runs one command of the command line: reads its words, calls it, and says why it failed.
import type { Writable } from "node:stream";
import { parseArgs } from "node:util";
import { EventSource } from "eventsource";
import { createMooring, isMooringError, type Mooring, type MooringError } from "../index.ts";
import { type CliCall, type CliCommand, DONE, FAILED, parsed, usageOf, WRONG_USE } from "./command.ts";
import { CLI_COMMANDS, CLI_HELP, helpOf } from "./commands.ts";
import { type GatewayKey, readGatewayKey } from "./credentials.ts";
import { createPrinter, plain } from "./output.ts";
import { Refusal, WrongUse } from "./refusal.ts";

export interface CliTerminal extends Pick<CliCall, "env" | "signal" | "ask" | "time"> {
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** The longest name that the words begin with. */
const commandOf = (words: readonly string[]): CliCommand | undefined =>
  [...CLI_COMMANDS].sort((a, b) => b.name.length - a.name.length).find(({ name }) => name === words.slice(0, name.split(" ").length).join(" "));

/** A key opens streams by the header, which a browser could not send. */
const authorized = (key: string) =>
  class extends EventSource {
    constructor(url: string | URL) {
      super(url, { fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, authorization: `Bearer ${key}` } }) });
    }
  };

const connect = ({ url, key }: GatewayKey): Mooring => createMooring({ url, token: key, EventSource: authorized(key), streamsByHeader: true });

const sentenceOf = (error: MooringError, url: string | undefined): string => {
  const app = error.data?.app;
  if (app === undefined) return `no gateway answers${url === undefined ? "" : ` at ${url}`}: ${error.message}`;
  return `${app.code}: ${error.message}${app.retryAfter === undefined ? "" : ` Try again in ${app.retryAfter} s.`} (${app.requestId})`;
};

const readWords = (command: CliCommand, args: readonly string[]) => {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: parsed(command.options), allowPositionals: true, strict: true });
    return { options: values as CliCall["options"], words: positionals.slice(command.name.split(" ").length) };
  } catch (error) {
    throw new WrongUse(`${(error as Error).message}\n${usageOf(command)}`);
  }
};

const checkWords = ({ words, ...command }: CliCommand, given: readonly string[]): void => {
  const needed = words.filter((word) => !word.startsWith("[")).length;
  if (given.length < needed || given.length > words.length) throw new WrongUse(usageOf({ words, ...command }));
};

export const run = async (args: readonly string[], { stdout, stderr, env, ...terminal }: CliTerminal): Promise<number> => {
  const complain = (text: string): void => void stderr.write(`${text.split("\n").map(plain).join("\n")}\n`);
  const words = args.filter((word) => !word.startsWith("-"));
  const command = commandOf(words);
  if (command === undefined) {
    const isHelp = words.length === 0 || args.includes("--help") || words[0] === "help";
    (isHelp ? stdout : stderr).write(isHelp ? `${CLI_HELP}\n` : `there is no command ${plain(words.join(" "))}; mooring --help lists them\n`);
    return isHelp && args.length > 0 ? DONE : WRONG_USE;
  }
  let url: string | undefined;
  const gateway = async (): Promise<Mooring> => {
    const credentials = await readGatewayKey(env);
    url = credentials.url;
    return connect(credentials);
  };
  try {
    const given = readWords(command, args);
    if (given.options["help"] === true) {
      stdout.write(`${helpOf(command)}\n`);
      return DONE;
    }
    checkWords(command, given.words);
    const output = createPrinter(stdout, stderr, given.options["json"] === true);
    return await command.run({ ...terminal, ...given, env, output, gateway });
  } catch (error) {
    if (error instanceof Refusal) complain(error.message);
    else if (isMooringError(error)) complain(sentenceOf(error, url));
    else throw error;
    return error instanceof WrongUse ? WRONG_USE : FAILED;
  }
};
