// `npx @mooring/agent-kit -- ./my-agent`: the entry of the package that judges agents.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SUITES } from "./cases/suites.ts";
import { KIT_HELP, type KitOptions, KitUsage, parseKitOptions } from "./kit-options.ts";
import { createPatience, kitTime as time } from "./kit-time.ts";
import { junitText, resultText, totalsOf } from "./report.ts";
import { runCases } from "./run-cases.ts";

const COULD_NOT_RUN = 2;
const print = (text: string): void => void process.stdout.write(text);

const listText = (): string =>
  SUITES.map(
    ({ name, about, cases }) => `${name}: ${about}\n${cases.map(({ id, title, rules }) => `  ${id.padEnd(11)} ${title} (${rules.join(", ")})\n`).join("")}`,
  ).join("");

const readKnown = (file: string | null): ReadonlySet<string> => {
  if (file === null) return new Set();
  try {
    return new Set(
      readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line) => line.replace(/#.*/, "").trim() || []),
    );
  } catch (error) {
    throw new KitUsage(`--known ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
};

const judge = async (options: KitOptions): Promise<number> => {
  const { out, cases, atOnce, tracesAll } = options;
  const known = readKnown(options.knownFile);
  mkdirSync(out, { recursive: true });
  const patience = createPatience(time);
  const command = options.words.map((word) => (/^[\w./=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");
  const report = { out, known, again: (id: string): string => `npx @mooring/agent-kit --only ${id} --trace -- ${command}` };
  const results = await runCases(cases, {
    words: options.words,
    env: process.env,
    time,
    patience,
    atOnce,
    out,
    tracesAll,
    programs: fileURLToPath(new URL("./programs", import.meta.url)),
    onResult: (result) => print(resultText(result, report)),
  });
  patience.stop();
  const { passed, failed, notObservable, reasons } = totalsOf(results, known);
  writeFileSync(join(out, "report.json"), `${JSON.stringify({ passed, failed, notObservable, load: patience.load, results }, null, 2)}\n`);
  writeFileSync(join(out, "junit.xml"), junitText(results));
  print(`\n${passed} passed, ${failed} failed, ${notObservable} not observable; see ${join(out, "report.json")}\n`);
  for (const reason of reasons) print(`${reason}\n`);
  return reasons.length > 0 ? 1 : 0;
};

const main = async (): Promise<number> => {
  try {
    const options = parseKitOptions(process.argv.slice(2));
    if (options.helps || options.lists) {
      print(options.helps ? KIT_HELP : listText());
      return 0;
    }
    return await judge(options);
  } catch (error) {
    if (!(error instanceof KitUsage)) throw error;
    process.stderr.write(`agent-kit: ${error.message}\nSee --help.\n`);
    return COULD_NOT_RUN;
  }
};

process.exitCode = await main();
