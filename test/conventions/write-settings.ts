// `npm run docs:settings`: writes the table of settings into README, between its two marks.
import { readFile, writeFile } from "node:fs/promises";
import { settingsTable } from "../../server/config-table.ts";

export const README = new URL("../../README.md", import.meta.url);
export const BETWEEN = /(?<=<!-- settings -->\n).*?(?=<!-- \/settings -->)/su;

if (process.argv[1] === import.meta.filename) {
  const text = await readFile(README, "utf8");
  await writeFile(
    README,
    text.replace(BETWEEN, () => `\n${settingsTable()}\n\n`),
  );
}
