// The console shows words, not identifiers: in its sentences, and where a gateway or an agent names a state, a reason or a resource.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { identifiersIn, rawIn, shownIn } from "./shown-words.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FILES = readdirSync(`${ROOT}portal/src`, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => `portal/src/${name}`)
  .sort();
const read = (file: string): string => readFileSync(`${ROOT}${file}`, "utf8");

test("no sentence of the console has an identifier", () => {
  const wrong = FILES.flatMap((file) => shownIn(file, read(file)).map(({ line, words }) => `${file}:${line} ${words.join(", ")}`));
  expect(wrong).toEqual([]);
});

test("the console has one way to put an identifier into words", () => {
  const wrong = FILES.filter((file) => file !== "portal/src/ui/words.ts").flatMap((file) => rawIn(file, read(file)).map((text) => `${file}: ${text}`));
  expect(wrong).toEqual([]);
});

describe("an identifier is found", () => {
  test.each(["The limit of alertRules is reached.", "It is past_due now.", "Ended with PORT_TAKEN.", "lastSeen"])("in %j", (text) =>
    expect(identifiersIn(text)).toHaveLength(1),
  );
  test.each(['const text = "The alertRules of it";', "const text = (n: number) => `${" + "n} alertRules`;", 'const text = { a: "is past_due now" };'])(
    "in %s",
    (text) => expect(shownIn("a.ts", text)).toHaveLength(1),
  );
  test.each(["<p>alertRules</p>", '<Panel title="alertRules" />', "<p>{`is $" + "{n} past_due`}</p>"])("in %s", (text) =>
    expect(shownIn("a.tsx", `const a = ${text};`)).toHaveLength(1),
  );
  test.each(["const a = WORDS[kind] ?? kind;", 'const a = status.replaceAll("_", " ");', "const a = status.replace(/_/g, ' ');"])("raw in %s", (text) =>
    expect(rawIn("a.ts", text)).toHaveLength(1),
  );
});

describe("no identifier is", () => {
  test.each([
    'Send `force=true` or "alertRules".',
    "PostgreSQL and CloudEvents 1.0",
    "the device's own",
    "mooring-agent.v1",
    "{deviceId} of {limit}",
    "RFC 3986",
  ])("in %j", (text) => expect(identifiersIn(text)).toEqual([]));
  test.each(["<code>alertRules</code>", '<p className="isWide a">x</p>', "<p key={a}>{kind}</p>"])("in %s", (text) =>
    expect(shownIn("a.tsx", `const a = ${text};`)).toEqual([]),
  );
});
