// `npm run docs:settings`: writes the table of settings into docs/settings.md, between its two marks.
import { readFile, writeFile } from "node:fs/promises";
import { settingsTable } from "../../server/config-table.ts";

export const SETTINGS_PAGE = new URL("../../docs/settings.md", import.meta.url);
export const BETWEEN = /(?<=<!-- settings -->\n).*?(?=<!-- \/settings -->)/su;

if (process.argv[1] === import.meta.filename) {
  const text = await readFile(SETTINGS_PAGE, "utf8");
  await writeFile(
    SETTINGS_PAGE,
    text.replace(BETWEEN, () => `\n${settingsTable()}\n\n`),
  );
}
