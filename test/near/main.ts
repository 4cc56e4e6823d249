// `npm run test:near`: the tests near what changed since main, in under a minute.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { choose } from "./choose.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HELP = `npm run test:near [-- [--since COMMIT] [--list]]

  Runs the tests near what changed since main, committed or not: changed tests themselves, then those of the same feature,
  of the same name and of the same folder, the cheapest first, as many as fit into a minute. It prints the rest.
  It does not replace npm test. Tests of test/flows, test/portal and test/release run only if they changed themselves.

  --since   compare with this commit instead of main
  --list    print the files and run nothing
`;

const git = (...words: readonly string[]): readonly string[] =>
  execFileSync("git", words, { cwd: ROOT, encoding: "utf8" })
    .split("\n")
    .filter((line) => line !== "");

const main = (): number => {
  const { values } = parseArgs({
    options: { since: { type: "string", default: "main" }, list: { type: "boolean", default: false }, help: { type: "boolean", default: false } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const [base = "HEAD"] = git("merge-base", values.since, "HEAD");
  const changed = [...git("diff", "--name-only", base), ...git("ls-files", "--others", "--exclude-standard")];
  const tests = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${name}`);
  const { run, left } = choose(changed, tests);
  if (left.length > 0) process.stdout.write(`Near too, without the time for them:\n${left.map((test) => `  ${test}`).join("\n")}\n`);
  if (run.length === 0 || values.list) {
    process.stdout.write(run.length === 0 ? `nothing changed since ${values.since}\n` : `${run.join("\n")}\n`);
    return 0;
  }
  const started = (program: string, ...words: readonly string[]): number =>
    spawnSync(process.execPath, [program, ...words], { cwd: ROOT, stdio: "inherit" }).status ?? 1;
  // These run the built gateway.
  const built = run.some((test) => /^test\/(?:flows|portal|release)\//.test(test)) || !existsSync(join(ROOT, "server/generated"));
  if (built && started("server/build.mjs") !== 0) return 1;
  return started(join("node_modules", "vitest", "vitest.mjs"), "run", "--config", "test/vitest.config.ts", ...run);
};

process.exitCode = main();
