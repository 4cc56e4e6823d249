// Words that the code once had for itself do not come back as identifiers or file names. Prose and string values may use them.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Each with the field's word. */
const RETIRED: ReadonlyMap<string, string> = new Map([
  ["agent-side", "agent operations"],
  ["agent-word", "agent reports"],
  ["ailment", "degradation"],
  ["allowance", "connect limiter, token bucket"],
  ["become-evaluator", "become leader"],
  ["become-relay", "become leader"],
  ["become-roller", "become leader"],
  ["call-scope", "run handler"],
  ["census", "cluster snapshot"],
  ["courier", "device notifier"],
  ["departure", "shutdown, socket drain"],
  ["device-wall", "device limits"],
  ["door", "transport, listener"],
  ["doors", "transports, listeners"],
  ["farewell", "shutdown, socket drain"],
  ["furnish", "create"],
  ["handed-context", "in-process request"],
  ["headroom", "queue quota"],
  ["house", "conventions"],
  ["in-halves", "split batch"],
  ["in-hand", "unwritten send, in flight"],
  ["off-switch", "lazy abort"],
  ["queueing", "create queue operation"],
  ["rhythm", "heartbeat pacing"],
  ["rivals", "duplicate probe"],
  ["room", "feature"],
  ["rooms", "features"],
  ["roster", "session registry"],
  ["settler", "write before cancel"],
  ["same-text", "string interner"],
  ["tidings", "change notifier"],
  ["time-bound", "timeout"],
  ["vigil", "stream reauthorizer"],
  ["witness", "command telemetry"],
]);
const WORDS = new RegExp(`(?:^|-)(${[...RETIRED.keys()].join("|")})(?=-|$)`, "g");
/** A text without it need not be parsed. */
const POSSIBLE = new RegExp([...RETIRED.keys()].map((word) => word.replaceAll("-", "[-_]?")).join("|"), "i");

/** Identifiers that may keep such a word, each for a reason. */
const EXCEPTIONS: ReadonlyMap<string, string> = new Map();

const kebab = (identifier: string): string =>
  identifier
    .replaceAll(/([a-z\d])([A-Z])/g, "$1-$2")
    .replaceAll(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .replaceAll("_", "-")
    .toLowerCase();
const retiredIn = (name: string): readonly string[] => [...kebab(name).matchAll(WORDS)].map(([, word = ""]) => word);

const identifiersOf = (file: string, text: string): ReadonlySet<string> => {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) names.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
  return names;
};

/** Identifiers with a retired word in a source, and the parts of its path with one. */
const relapsesIn = (file: string, text: string): readonly string[] => {
  const parts = file.split("/").map((part) => part.replace(/\..*$/, ""));
  return [...parts, ...(POSSIBLE.test(text) ? identifiersOf(file, text) : [])].filter((name) => retiredIn(name).length > 0);
};

const FILES = ["server", "protocol", "agent-sim", "portal", "test"].flatMap((folder) =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(tsx?|mjs|cjs)$/.test(name))
    .map((name) => `${folder}/${name}`),
);
const relapses = FILES.flatMap((file) => relapsesIn(file, readFileSync(`${ROOT}${file}`, "utf8")).map((name) => ({ file, name })));

test("no identifier and no file has a retired word", () => {
  const wrong = relapses.filter(({ name }) => !EXCEPTIONS.has(name));
  expect(wrong.map(({ file, name }) => `${file}: ${name}, better: ${retiredIn(name).map((word) => RETIRED.get(word))}`)).toEqual([]);
});

test("every exception is still needed", () => {
  expect([...EXCEPTIONS.keys()].filter((exception) => !relapses.some(({ name }) => name === exception))).toEqual([]);
});

test("a retired word is found in each part of a name, and not in longer words, comments and texts", () => {
  const text = `// a door
    export const HTTP_DOORS = openDoor(offSwitch, "door", mushroom, indoor);
    interface TenantRoom { readonly sameText: string }
    const outdoors = \`door \${rosterOf}\`;`;
  expect(relapsesIn("server/house/farewell.test.ts", text)).toEqual([
    "house",
    "farewell",
    "HTTP_DOORS",
    "openDoor",
    "offSwitch",
    "TenantRoom",
    "sameText",
    "rosterOf",
  ]);
});
