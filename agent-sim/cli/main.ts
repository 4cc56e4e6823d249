// `mooring-agent`: the agent as it is installed on devices. This is the entry of the one file that bundle.mjs makes.
import { constants } from "node:os";
import { parseArgs } from "node:util";
import { AGENT_VERSION, canUseProxies, PROXY_SWITCH, proxyVariable, systemTime as time } from "../agent/index.ts";
import { startProgram } from "../children/index.ts";
import { runDevice } from "../device.ts";
import { BadOptions } from "../options.ts";
import { agentCommands } from "./commands.ts";
import { type Invocation, type Resolved, resolveSettings, SETTING_NAMES, settingsHelp } from "./settings.ts";

const COULD_NOT_RUN = 2;

const help = (file: string): string => `mooring-agent ${AGENT_VERSION}: connects this machine to a Mooring gateway as a device.

  mooring-agent COMMAND [options]

${Object.entries(agentCommands)
  .map(([name, { usage, help: about }]) => `  ${`${name}${usage === "" ? "" : ` ${usage}`}`.padEnd(24)} ${about}\n`)
  .join("")}
Options of every command; each can stand in ${file} under its name, or in the environment as MOORING_AGENT_NAME:
${settingsHelp()}  --json         for programs
  --version, --help
`;

const text = { type: "string" } as const;
const flag = { type: "boolean" } as const;

/** Node reads these variables when it starts, so the command starts once more with them. Null: they are as they should be. */
const missingVariables = (ca: string | undefined): Readonly<Record<string, string>> | null => {
  const wanted = {
    ...(ca === undefined ? {} : { NODE_EXTRA_CA_CERTS: ca }),
    ...(proxyVariable(process.env) === null || !canUseProxies ? {} : { [PROXY_SWITCH]: "1" }),
  };
  return Object.entries(wanted).every(([name, value]) => process.env[name] === value) ? null : wanted;
};
const startAgain = async (variables: Readonly<Record<string, string>>): Promise<number> => {
  const { child, ended } = startProgram({
    command: process.execPath,
    // It says that proxies are experimental in this version of Node.
    words: ["--disable-warning=UNDICI-EHPA", ...process.execArgv, ...process.argv.slice(1)],
    env: { ...process.env, ...variables },
    time,
    stdio: "inherit",
    sharesTerminal: true,
    outlives: true,
  });
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => void child.kill(signal));
  // The terminal sends it to both.
  process.on("SIGINT", () => undefined);
  const { code, signal, error } = await ended;
  if (error !== null) throw error;
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
};

const parse = (args: readonly string[]) => {
  const settings = Object.fromEntries(SETTING_NAMES.map((name) => [name, text]));
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...settings,
        token: text,
        lines: text,
        out: text,
        json: flag,
        wait: flag,
        yes: flag,
        follow: { ...flag, short: "f" },
        version: flag,
        help: { ...flag, short: "h" },
      },
    });
  } catch (error) {
    throw new BadOptions(error instanceof Error ? error.message : String(error));
  }
};

const run = async (args: readonly string[]): Promise<number> => {
  // What the launcher starts (update/launcher.ts): its words are the same in every version.
  if (args[0] === "agent") process.exit(await runDevice(args.slice(1)));
  const { values, positionals } = parse(args);
  if (values["version"] === true) {
    process.stdout.write(`${AGENT_VERSION}\n`);
    return 0;
  }
  const place = { uid: process.geteuid?.() ?? null, env: process.env };
  const resolved: Resolved = resolveSettings(values, place);
  const [name, ...words] = positionals;
  if (name === undefined || values["help"] === true) {
    process.stdout.write(help(resolved.file));
    return values["help"] === true ? 0 : COULD_NOT_RUN;
  }
  const command = Object.hasOwn(agentCommands, name) ? agentCommands[name as keyof typeof agentCommands] : undefined;
  if (command === undefined) throw new BadOptions(`there is no command ${name}`);
  const variables = missingVariables(resolved.settings.ca);
  if (variables !== null) return startAgain(variables);
  const given: Invocation = { ...place, resolved, words, flags: values, print: (line) => void process.stdout.write(`${line}\n`) };
  return command.run(given);
};

const main = async (): Promise<number> => {
  try {
    return await run(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(
      `mooring-agent: ${error instanceof Error ? error.message : String(error)}${error instanceof BadOptions ? "\nSee mooring-agent --help." : ""}\n`,
    );
    return error instanceof BadOptions ? COULD_NOT_RUN : 1;
  }
};

// The reader of a pipe has gone.
process.stdout.on("error", () => process.exit(0));
process.exitCode = await main();
