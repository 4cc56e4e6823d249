// Conventions that a text search can check: features, file names and sizes, the system clock, error codes, look-up tables.
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
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
/** The console reads its own clock and shows errors by their codes, so only the rules for files are the same. */
const CONSOLE = [".ts", ".tsx", ".css"].flatMap((ending) => filesIn("portal", ending));
const TESTS = filesIn("test");
const groups = Object.keys(contract).map(kebab).sort();

describe("features", () => {
  /** Features whose tests have another name. */
  const TESTED_IN: Readonly<Record<string, string>> = {
    // Their tests need an open socket.
    devices: "test/channel/devices.test.ts",
    agent: "test/channel/devices.test.ts",
    // Stateless, tested with the other facts about the service.
    health: "test/features/general/general.test.ts",
  };

  test("every group of the contract has its file, and every file its group", () => {
    expect(
      filesIn("protocol/groups")
        .map((file) => basename(file, ".ts"))
        .sort(),
    ).toEqual(groups);
  });

  test("every group has its feature, and no feature is without a group", () => {
    expect(foldersIn("server/features")).toEqual(groups);
    expect(groups.filter((feature) => !SOURCES.includes(`server/features/${feature}/index.ts`))).toEqual([]);
  });

  test("beside them stands only the interface that they share: what connects them is in server/wiring", () => {
    expect(readdirSync(`${ROOT}server/features`).filter((name) => name.endsWith(".ts"))).toEqual(["kit.ts"]);
    const creating = SOURCES.filter(
      (file) => /^server\/(?!wiring\/).*\.ts$/.test(file) && /import \{[^}]*\bcreate[A-Z]\w*[^}]*\} from "[./]*\/features\/[^/"]+\/index\.ts"/.test(read(file)),
    );
    expect(creating).toEqual([]);
    expect(SOURCES.filter((file) => /\binterface Others\b/.test(read(file)))).toEqual([]);
  });

  test.each(groups)("%s has a test of its own guarantees", (feature) => {
    const file = TESTED_IN[feature] ?? `test/features/${feature}/${feature}.test.ts`;
    expect(TESTS).toContain(file);
    if (feature in TESTED_IN) expect(read(file)).toMatch(new RegExp(`contract\\.${feature}\\b|features/${feature}/`));
  });

  test("every exception is still needed", () => {
    expect(Object.keys(TESTED_IN).filter((feature) => TESTS.includes(`test/features/${feature}/${feature}.test.ts`))).toEqual([]);
  });
});

describe("files", () => {
  const SOURCE_LINES = 300;
  const TEST_LINES = 600;
  const FOLDER_FILES = 30;
  const ALL = [...SOURCES, ...CONSOLE, ...TESTS];
  const longerThan = (files: readonly string[], lines: number): readonly string[] => files.filter((file) => read(file).split("\n").length - 1 > lines);

  test(`no source has more than ${SOURCE_LINES} lines, no test more than ${TEST_LINES}`, () => {
    expect([...longerThan([...SOURCES, ...CONSOLE], SOURCE_LINES), ...longerThan(TESTS, TEST_LINES)]).toEqual([]);
  });

  test(`no folder has more than ${FOLDER_FILES} files directly in it`, () => {
    const scripts = ALL.filter((file) => /\.tsx?$/.test(file)).map((file) => file.slice(0, file.lastIndexOf("/")));
    expect([...new Set(scripts)].filter((folder) => scripts.filter((each) => each === folder).length > FOLDER_FILES)).toEqual([]);
  });

  test("each begins with a sentence that states its purpose", () => {
    // A CSS module belongs to the part of its name.
    const silent = ALL.filter((file) => !file.endsWith(".module.css") && !/^(#!.*\n)?(\/\/ |\/\*\*? ?)\S+ .+/.test(read(file)));
    expect(silent).toEqual([]);
  });

  test("names are in kebab case and avoid words without meaning, such as utils", () => {
    const parts = ALL.flatMap((file) => file.split("/").map((part) => ({ file, name: part.replace(/(\.test|\.config|\.module)?\.[a-z]+$/, "") })));
    expect(parts.filter(({ name }) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)).map(({ file }) => file)).toEqual([]);
    const empty = /^(base|data|info|process|do|handler)$|(^|-)(utils?|helpers?|managers?|common|misc)$|-service$/;
    expect(parts.filter(({ name }) => empty.test(name)).map(({ file }) => file)).toEqual([]);
  });

  test("no object literal is spread into another, as if to let properties share a line", () => {
    const packed = [...SOURCES, ...CONSOLE].filter((file) => /\.\.\.\{ *[a-z.]/i.test(read(file)));
    expect(packed).toEqual([]);
  });

  test("no comment begins without its noun, as in: of the body, those that wait, whoever asks", () => {
    const fragments = [...SOURCES, ...CONSOLE].filter((file) => /^\s*(?:\/\*\*|\/\/) (?:Of|Those|Whoever)\b/m.test(read(file)));
    expect(fragments).toEqual([]);
  });

  test("a comment names only files that exist", () => {
    const known = [
      ...ALL,
      ...filesIn("prisma", ".prisma"),
      ...[".mjs", ".cjs"].flatMap((ending) => ["server", "agent-sim", "test"].flatMap((folder) => filesIn(folder, ending))),
    ];
    const commentOf = (line: string): string => /(?:^|\s)(?:\/\/|\*|\/\*\*) (.*)$/.exec(line)?.[1] ?? "";
    const named = (line: string): readonly string[] =>
      [...commentOf(line).matchAll(/(?<![\w*.<-])((?:[\w-]+\/)*[a-z][\w-]*(?:\.test)?\.(?:tsx?|mjs|cjs|prisma))\b/g)].map(([, name = ""]) => name);
    const missing = ALL.flatMap((file) =>
      read(file)
        .split("\n")
        .flatMap(named)
        .filter((name) => !known.some((each) => each === name || each.endsWith(`/${name}`)))
        .map((name) => `${file}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  test("no comment is a TODO", () => {
    expect(ALL.filter((file) => /\b(TODO|FIXME|XXX|HACK)\b/.test(read(file)) && !file.endsWith("conventions/sources.test.ts"))).toEqual([]);
  });
});

describe("the system clock", () => {
  /** The only files that read the system clock. All others get a clock as a parameter. */
  const CLOCKS = [
    "server/core/clock.ts",
    // The simulator imports only the protocol.
    "agent-sim/agent/timing/time.ts",
    // A program of its own, which judges agents.
    "protocol/agent-kit/kit-time.ts",
    // A developer's command: puts the time into the name of a migration.
    "prisma/migrate.ts",
  ];

  test("has one reader in the server and one in the simulator", () => {
    const asking = SOURCES.filter((file) => /\bDate\.now\(|\bnew Date\(\)/.test(read(file)));
    expect(asking.toSorted()).toEqual(CLOCKS.toSorted());
  });

  test("is handed out where a process starts, and nowhere else", () => {
    const STARTS = ["server/cli.ts", "server/main.ts", "prisma/migrate.ts"];
    const naming = SOURCES.filter((file) => file !== "server/core/clock.ts" && /\bsystemClock\b/.test(read(file)));
    expect(naming.toSorted()).toEqual(STARTS.toSorted());
  });

  test("gives features the time that passes, too", () => {
    const measuring = SOURCES.filter((file) => file.startsWith("server/features/") && /\bperformance\.now\b|\bhrtime\b/.test(read(file)));
    expect(measuring).toEqual([]);
  });

  test("stands behind no parameter that may be left out", () => {
    const optional = SOURCES.filter(
      (file) => file.startsWith("server/") && /\bclock\?:|(?<!const )\bclock\b[^=;{}()]*= *(?:system|create)\w*Clock|\bnow\?: Date/.test(read(file)),
    );
    expect(optional).toEqual([]);
  });
});

describe("calls to others", () => {
  /** Everything that leaves the service goes through one client with bounds and a guard. */
  const CLIENT = /^server\/platform\/outbound\/[a-z-]+\.ts$/;
  const ELSEWHERE: Readonly<Record<string, string>> = {
    "server/gateway/http/docs-page.ts": "a script that runs in the browser",
  };
  /** The edge takes connections and carries bytes to services of devices. It opens none by an address that a tenant names. */
  const EDGE = /^server\/(?:edge\/|core\/ports\/edge\.ts$|features\/tunnels\/visits\/forward\.ts$)/;
  const CALL = /\bfetch\(|\bhttps?\.(request|get)\(|import \{[^}]*\b(request|get)\b[^}]*\} from "node:https?"|from "(undici|node:https|node:http2)"/;

  test("use the outbound client", () => {
    const calling = SOURCES.filter((file) => file.startsWith("server/") && !CLIENT.test(file) && !EDGE.test(file) && CALL.test(read(file)));
    expect(calling).toEqual(Object.keys(ELSEWHERE));
  });
});

describe("what an agent hears from others", () => {
  const AGENT = SOURCES.filter((file) => file.startsWith("agent-sim/"));
  const JUDGE = "agent-sim/agent/answers.ts";
  const within = (pattern: RegExp, elsewhere: Readonly<Record<string, string>>): readonly string[] =>
    AGENT.filter((file) => file !== JUDGE && !(file in elsewhere) && pattern.test(read(file)));

  test("only one file judges answers by their status", () => {
    const COMPARED = /\bstatus(?:Code)?\b\s*(?:===|!==|[<>]=?)\s*\d|\b\d{3}\s*(?:===|!==|[<>]=?)\s*\w*\.?status\b|\.has\(\w+\.status\)/i;
    const ELSEWHERE = { "agent-sim/host/processes/health.ts": "judges the answers of an app" };
    expect(within(COMPARED, ELSEWHERE)).toEqual([]);
    expect(COMPARED.test(read(JUDGE))).toBe(true);
  });

  test("only one file makes HTTP requests, and its answers are judged before anybody sees them", () => {
    const CALLS = /from "node:https?"|\bfetch\(|from "undici"/;
    const ELSEWHERE = {
      "agent-sim/agent/http.ts": "this is the file",
      "agent-sim/agent/socket.ts": "the type of a refused upgrade",
      "agent-sim/agent/proxies.ts": "makes connections for the other files",
      "agent-sim/cli/status-socket.ts": "the agent's own socket on this machine",
      "agent-sim/agent/carrier/connect.ts": "upgrades to a carrier; carrier.ts judges a refusal",
      "agent-sim/host/processes/health.ts": "asks an app",
      "agent-sim/demo/receiver.ts": "takes calls and makes none",
    };
    expect(within(CALLS, ELSEWHERE)).toEqual([]);
    expect(read("agent-sim/agent/http.ts")).toContain("ownAnswer(");
    expect(read("agent-sim/agent/socket.ts")).toContain("ownAnswer(");
  });

  test("one function reads the seconds that others name", () => {
    const READS = /Number(?:\.parse(?:Float|Int))?\([^)]*(?:retry|after|interval|seconds)|parseFloat\(/i;
    const OURS = {
      "agent-sim/device.ts": "reads its own options",
      "agent-sim/options.ts": "reads its own options",
      "agent-sim/demo.ts": "reads its own options",
    };
    expect(within(READS, OURS)).toEqual([]);
    expect(read("server/features/webhooks/delivery/retry-schedule.ts")).toContain("readSeconds(");
  });

  /** Waits that need no random part, by the constant that names them. */
  const ALIKE: Readonly<Record<string, string>> = {
    FIRST_LINE_MS: "a line for the person who watches; nothing is sent",
    NEXT_LINE_MS: "as FIRST_LINE_MS",
    RESET_AFTER_MS: "for the gateway to end a stream that was aborted",
    OPENING_MS: "a limit, not a period",
    SOON_MS: "after a change on this device",
    STORE_AGAIN_MS: "the disk of this device is full",
  };
  test("every wait of an agent by a constant is random or has a reason not to be", () => {
    const agents = AGENT.filter((file) => /^agent-sim\/(agent|update)\/|state-sync|log-/.test(file));
    const waits = agents.flatMap((file) =>
      [...read(file).matchAll(/(?:\.after|\.within|\.stretch|schedule)\(([A-Z][A-Z_]+)\s*[,)]/g)].map(([, name = ""]) => `${file} ${name}`),
    );
    expect(waits.filter((wait) => !((wait.split(" ")[1] ?? "") in ALIKE))).toEqual([]);
  });
});

describe("error codes", () => {
  const server = SOURCES.filter((file) => file.startsWith("server/"))
    .map(read)
    .join("\n");
  const declared = new Set(Object.values(contract).flatMap(({ operations }) => Object.values(operations).flatMap(({ errors }): readonly string[] => errors)));
  const isNamed = (code: string): boolean => new RegExp(`["'\`]${code}["'\`]`).test(server);

  test("each occurs in the server", () => {
    expect(ERROR_CODES.filter((code) => !isNamed(code))).toEqual([]);
  });

  test("each occurs in a test", () => {
    const tests = TESTS.filter((file) => !/^test\/(conventions|chaos)\//.test(file))
      .map(read)
      .join("\n");
    expect(ERROR_CODES.filter((code) => !new RegExp(`\\b${code}\\b`).test(tests))).toEqual([]);
  });

  test("a feature throws only codes that its operations declare or that all calls have in common", () => {
    const COMMON: ReadonlySet<ErrorCode> = new Set([
      ...(["VALIDATION_FAILED", "MALFORMED_JSON", "UNAUTHORIZED", "INVALID_SIGNATURE", "FORBIDDEN", "RATE_LIMIT_EXCEEDED"] as const),
      ...(["TENANT_SUSPENDED", "TENANT_NOT_FOUND", "PLAN_LIMIT_EXCEEDED", "SERVICE_UNAVAILABLE", "INTERNAL_ERROR", "API_KEY_IP_DENIED"] as const),
      // Any change with an Idempotency-Key; a feature that stores the key in its own row throws them itself.
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
  /** Object literals with string keys. `constructor` is a key of each of them. */
  const TABLE = /^(?:export )?const ([A-Z][A-Z_]*): (?:Readonly<)?(?:Partial<)?Record<string,/gm;

  test("with string keys are Maps, or a check of Object.hasOwn guards each read", () => {
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
