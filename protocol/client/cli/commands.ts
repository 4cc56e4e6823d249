// All commands of the command line, and the help that follows from them.
import { APPS } from "./apps.ts";
import { type CliCommand, EVERYWHERE, type Option, usageOf } from "./command.ts";
import { completion } from "./completion.ts";
import { DEVICES } from "./devices.ts";
import { MANIFESTS } from "./manifests.ts";
import { ROLLOUTS } from "./rollouts.ts";
import { SIGNING_IN } from "./signing-in.ts";

export const CLI_COMMANDS: readonly CliCommand[] = [...SIGNING_IN, ...DEVICES, ...APPS, ...ROLLOUTS, ...MANIFESTS, completion(() => CLI_COMMANDS)];

const optionLine = ([name, { short, value, about }]: readonly [string, Option]): string =>
  `  ${`${short === undefined ? "    " : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`.padEnd(28)} ${about}`;

export const helpOf = (command: CliCommand): string =>
  [usageOf(command), "", command.about, "", ...Object.entries({ ...command.options, ...EVERYWHERE }).map(optionLine)].join("\n");

const WIDTH = Math.max(...CLI_COMMANDS.map(({ name, words }) => [name, ...words].join(" ").length));
export const CLI_HELP = [
  "The command line of Mooring, for a tenant.",
  "",
  ...CLI_COMMANDS.map(({ name, words, about }) => `  mooring ${[name, ...words].join(" ").padEnd(WIDTH)}  ${about.split(". ")[0]?.replace(/\.$/, "")}.`),
  "",
  "mooring COMMAND --help shows its options. Devices, apps, fleets and policies are named by their name or their id.",
  "A command exits with 0 when it has done what it says, with 1 when it has not, and with 2 when it was called wrongly.",
  "MOORING_URL and MOORING_KEY stand in for mooring login, for jobs.",
].join("\n");

/** docs/cli.md, which a test compares. */
export const reference = (): string => {
  const sections = CLI_COMMANDS.map((command) => {
    const options = Object.entries(command.options).map(
      ([name, { short, value, about }]) =>
        `| \`--${name}${value === undefined ? "" : ` ${value}`}\`${short === undefined ? "" : `, \`-${short}\``} | ${about} |`,
    );
    return [
      `## mooring ${command.name}`,
      "",
      "```sh",
      usageOf(command),
      "```",
      "",
      command.about,
      ...(options.length === 0 ? [] : ["", "| Option | |", "|---|---|", ...options]),
    ].join("\n");
  });
  return `${[INTRODUCTION, ...sections].join("\n\n")}\n`;
};

const INTRODUCTION = `# The command line

\`mooring\` is for the people of a tenant: it comes with the package \`@mooring/client\`, and calls the API with a key. In a clone of this repository, \`npm run --silent mooring -- devices\` runs it.

\`\`\`sh
npm run --silent mooring -- login http://127.0.0.1:8080
npm run --silent mooring -- devices --status online
npm run --silent mooring -- run nuc ping --wait
\`\`\`

Devices, apps, fleets and update policies are named by their name or their id. \`--json\` prints one JSON document, or a line for each item of what goes on, everywhere. A command exits with 0 when it has done what it says, with 1 when it has not, and with 2 when it was called wrongly. Jobs set \`MOORING_URL\` and \`MOORING_KEY\` instead of signing in. \`npm run docs:cli\` writes this page.`;
