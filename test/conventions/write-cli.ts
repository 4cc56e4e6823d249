// `npm run docs:cli`: writes docs/cli.md from the commands of the command line.
import { writeFile } from "node:fs/promises";
import { reference } from "../../protocol/client/cli/commands.ts";

export const CLI_PAGE = new URL("../../docs/cli.md", import.meta.url);

if (process.argv[1] === import.meta.filename) await writeFile(CLI_PAGE, reference());
