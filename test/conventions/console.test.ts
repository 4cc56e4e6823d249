// Conventions of the console and of its tests that a text search can check.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const filesIn = (folder: string, ending: string): readonly string[] =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name}`)
    .sort();
const matching = (files: readonly string[], pattern: RegExp): readonly string[] => files.filter((file) => pattern.test(readFileSync(`${ROOT}${file}`, "utf8")));

const SCREENS = ["portal/src/screens", "portal/src/parts"].flatMap((folder) => [".ts", ".tsx"].flatMap((ending) => filesIn(folder, ending)));

describe("a screen", () => {
  test("keeps no state in its module: two of its kind would share it, and a hook such as useReadAgain does it", () => {
    expect(matching(SCREENS, /^let /m)).toEqual([]);
  });

  test("shows a list with List or FilteredList, which also say what to do without rows", () => {
    expect(matching(SCREENS, /\.count (?:=== 0|> 0)\s+\?\s*\(?\s*<(?:Table|Empty)\b/)).toEqual([]);
  });
});

test("who listens to the fields inside an element listens to input: React alone tells containers of changes while somebody types", () => {
  expect(matching([...filesIn("portal/src", ".tsx")], /<(?:div|form|fieldset|section|ul|li)\b[^<>]*\bonChange=/)).toEqual([]);
});

test("ids of elements come from ui/use-id.ts: those of Preact's own hook may not have a number appended", () => {
  expect(matching([...filesIn("portal/src", ".ts"), ...filesIn("portal/src", ".tsx")], /\buseId\b[^;]*from "react"/)).toEqual([]);
});

test("no text of the console names a package manager: who looks at it has an installation, and no checkout", () => {
  expect(matching([...filesIn("portal/src", ".ts"), ...filesIn("portal/src", ".tsx")], /\bnp[mx]\b/)).toEqual([]);
});

describe("a test of the console", () => {
  const TESTS = filesIn("test/portal", ".test.ts");

  test("uses its worker's gateway, or says why it starts one of its own", () => {
    const starting = matching(TESTS, /\bstartWorld\(/);
    expect(starting).not.toEqual([]);
    expect(starting.filter((file) => !matching([file], /\/\/ A gateway of its own: /).includes(file))).toEqual([]);
  });

  test("waits with eventually: expect.poll must know the one test that runs, and two of a file run at once", () => {
    expect(matching(TESTS, /\bexpect\s*\.poll\(/)).toEqual([]);
  });
});
