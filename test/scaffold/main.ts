// `npm run new -- <feature>`: writes a feature that compiles and passes its tests, and says what to do next.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { NameError } from "./names.ts";
import { writeFeature } from "./write.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HELP = `npm run new -- FEATURE [--one SINGULAR] [--prefix LETTERS]

  Writes a feature with one record type (list, get, create, update, delete, two events). It compiles and passes its tests.

  FEATURE   plural in lower case with hyphens, such as backup-policies: names the folder, the table and the REST path
  --one     the singular of an irregular plural: staff-member for staff
  --prefix  two to four letters at the start of its ids; by default the first three of the singular
`;

const run = (command: string, ...args: readonly string[]): void =>
  void execFileSync("npx", ["--no-install", command, ...args], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });

const main = (): void => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { one: { type: "string" }, prefix: { type: "string" }, help: { type: "boolean", default: false } },
  });
  const [feature, ...others] = positionals;
  if (values.help) return void process.stdout.write(HELP);
  if (feature === undefined || others.length > 0) throw new NameError("give the name of one feature; see npm run new -- --help");
  const { created, changed } = writeFeature(ROOT, { feature, one: values.one, prefix: values.prefix }, new Date());
  run("biome", "check", "--write", ...[...created, ...changed].filter((path) => /\.tsx?$/.test(path)));
  execFileSync("npm", ["run", "--silent", "generate"], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  process.stdout.write(
    `Created:\n${created.map((path) => `  ${path}`).join("\n")}\nChanged:\n${changed.map((path) => `  ${path}`).join("\n")}\n\nTest it: npx vitest run --config test/vitest.config.ts test/features/${feature}/${feature}.test.ts\nNext: adapt it, see CONTRIBUTING.md, "Add a resource".\n`,
  );
};

try {
  main();
} catch (error) {
  const isExpected = error instanceof NameError || (error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS"));
  process.stderr.write(`${isExpected ? (error as Error).message : error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = isExpected ? 2 : 1;
}
