// Conventions that a text search can check: features and their names, sizes, the one clock, error codes.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { contract, ERROR_CODES, type ErrorCode } from "../../protocol/index.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const filesIn = (folder: string, ending = ".ts"): readonly string[] =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending) && !name.startsWith("generated/"))
    .map((name) => `${folder}/${name}`)
    .sort();
const read = (file: string): string => readFileSync(`${ROOT}${file}`, "utf8");
const foldersIn = (folder: string): readonly string[] =>
  readdirSync(`${ROOT}${folder}`, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
const kebab = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const SOURCES = ["server", "protocol", "agent-sim", "prisma"].flatMap((folder) => filesIn(folder));
const TESTS = filesIn("test");
const groups = Object.keys(contract).map(kebab).sort();

describe("features", () => {
  /** Features whose guarantees another file proves. */
  const PROVEN_ELSEWHERE: Readonly<Record<string, string>> = {
    // A device is seen through its socket, so both are tested with one open.
    devices: "test/channel/devices.test.ts",
    agent: "test/channel/devices.test.ts",
    // Few facts without state, tested beside the other facts about the service.
    health: "test/features/general.test.ts",
  };

  test("every group of the contract has its file, and every file its group", () => {
    expect(filesIn("protocol/groups").map((file) => file.slice("protocol/groups/".length, -".ts".length))).toEqual(groups);
  });

  test("every group has its feature, and no feature is without a group", () => {
    // Deployments serve other features until they have operations of their own.
    expect(foldersIn("server/features").filter((folder) => folder !== "deployments")).toEqual(groups);
    expect(groups.filter((feature) => !SOURCES.includes(`server/features/${feature}/index.ts`))).toEqual([]);
  });

  test.each(groups)("%s has a test of its own guarantees", (feature) => {
    const file = PROVEN_ELSEWHERE[feature] ?? `test/features/${feature}.test.ts`;
    expect(TESTS).toContain(file);
    if (feature in PROVEN_ELSEWHERE) expect(read(file)).toMatch(new RegExp(`contract\\.${feature}\\b|features/${feature}/`));
  });

  test("no exception outlives its reason", () => {
    expect(Object.keys(PROVEN_ELSEWHERE).filter((feature) => TESTS.includes(`test/features/${feature}.test.ts`))).toEqual([]);
  });
});

describe("files", () => {
  const SOURCE_LINES = 250;
  const TEST_LINES = 600;
  const longerThan = (files: readonly string[], lines: number): readonly string[] => files.filter((file) => read(file).split("\n").length - 1 > lines);

  test(`no source has more than ${SOURCE_LINES} lines, no test more than ${TEST_LINES}`, () => {
    expect([...longerThan(SOURCES, SOURCE_LINES), ...longerThan(TESTS, TEST_LINES)]).toEqual([]);
  });

  test("each opens with a sentence that says what it is for", () => {
    const silent = [...SOURCES, ...TESTS].filter((file) => !/^(#!.*\n)?(\/\/ |\/\*\*? ?)\S+ .+/.test(read(file)));
    expect(silent).toEqual([]);
  });

  test("names say what is inside: kebab-case nouns, none of the words that say nothing", () => {
    const parts = [...SOURCES, ...TESTS].flatMap((file) => file.split("/").map((part) => ({ file, name: part.replace(/(\.test|\.config)?\.[a-z]+$/, "") })));
    expect(parts.filter(({ name }) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)).map(({ file }) => file)).toEqual([]);
    const empty = /^(base|data|info|process|do|handler)$|(^|-)(utils?|helpers?|managers?|common|misc)$|-service$/;
    expect(parts.filter(({ name }) => empty.test(name)).map(({ file }) => file)).toEqual([]);
  });

  test("nothing is left to do in a comment", () => {
    expect([...SOURCES, ...TESTS].filter((file) => /\b(TODO|FIXME|XXX|HACK)\b/.test(read(file)) && !file.endsWith("conventions/words.test.ts"))).toEqual([]);
  });
});

describe("time", () => {
  /** Who may ask the machine what time it is. Everyone else is handed a clock. */
  const CLOCKS = [
    "server/core/clock.ts",
    // The simulator knows only the protocol, so it has a door of its own.
    "agent-sim/agent/time.ts",
    // A person's command: stamps the name of a new migration.
    "prisma/migrate.ts",
  ];

  test("has one door on each side", () => {
    const asking = SOURCES.filter((file) => /\bDate\.now\(|\bnew Date\(\)/.test(read(file)));
    expect(asking.toSorted()).toEqual(CLOCKS.toSorted());
  });
});

describe("error codes", () => {
  const server = SOURCES.filter((file) => file.startsWith("server/"))
    .map(read)
    .join("\n");
  const declared = new Set(Object.values(contract).flatMap(({ operations }) => Object.values(operations).flatMap(({ errors }): readonly string[] => errors)));
  const isNamed = (code: string): boolean => new RegExp(`["'\`]${code}["'\`]`).test(server);

  test("each of the table is thrown somewhere", () => {
    expect(ERROR_CODES.filter((code) => !isNamed(code))).toEqual([]);
  });

  test("each is seen by some test", () => {
    const tests = TESTS.filter((file) => !/^test\/(conventions|chaos)\//.test(file))
      .map(read)
      .join("\n");
    expect(ERROR_CODES.filter((code) => !new RegExp(`\\b${code}\\b`).test(tests))).toEqual([]);
  });

  test("a feature throws only what the table knows and its operations declare, or what belongs to every call", () => {
    const COMMON: ReadonlySet<ErrorCode> = new Set([
      ...(["VALIDATION_FAILED", "MALFORMED_JSON", "UNAUTHORIZED", "INVALID_SIGNATURE", "FORBIDDEN", "RATE_LIMIT_EXCEEDED"] as const),
      ...(["TENANT_SUSPENDED", "TENANT_NOT_FOUND", "PLAN_LIMIT_EXCEEDED", "SERVICE_UNAVAILABLE", "INTERNAL_ERROR", "API_KEY_IP_DENIED"] as const),
      // Of every change that honours an Idempotency-Key; a feature that keeps the key with its row throws them itself.
      ...(["IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_KEY_INVALID"] as const),
    ]);
    const thrown = SOURCES.filter((file) => file.startsWith("server/features/")).flatMap((file) =>
      [...read(file).matchAll(/\b(?:fail|AppError|refused)\(\s*"([A-Z_]+)"/g)].map(([, code = ""]) => ({ file, code })),
    );
    expect(thrown.length).toBeGreaterThan(40);
    const codes: ReadonlySet<string> = new Set(ERROR_CODES);
    expect(thrown.filter(({ code }) => !codes.has(code))).toEqual([]);
    expect(thrown.filter(({ code }) => !declared.has(code) && !(COMMON as ReadonlySet<string>).has(code))).toEqual([]);
  });
});

describe("look-up tables", () => {
  /** Tables by text, as object literals: `constructor` is a key of each of them. */
  const TABLE = /^(?:export )?const ([A-Z][A-Z_]*): (?:Readonly<)?(?:Partial<)?Record<string,/gm;

  test("that are read by a text are Maps, or ask whether the key is their own", () => {
    const found = SOURCES.flatMap((file) => {
      const text = read(file);
      return [...text.matchAll(TABLE)].flatMap(([, name = ""]) =>
        text
          .split("\n")
          .filter((line) => new RegExp(`\\b${name}\\[`).test(line) && !line.includes(`Object.hasOwn(${name},`))
          .map((line) => `${file}: ${line.trim()}`),
      );
    });
    expect(found).toEqual([]);
  });
});
