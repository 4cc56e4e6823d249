// The documents match the code: every term of the glossary occurs in it, and every link, path and npm script exists.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const filesIn = (folder: string, ending: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending) && !name.startsWith("generated/"))
    .map((name) => `${folder}/${name}`);

const DOCUMENTS = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md") && name !== "CHANGELOG.md"),
  ...["docs", "protocol"].flatMap((folder) => filesIn(folder, ".md")),
];

describe("the glossary", () => {
  const terms = [...read("docs/glossary.md").matchAll(/^- \*\*(.+?)\*\*: \S/gm)].map(([, term = ""]) => term);

  test("lists each term once, in alphabetical order", () => {
    expect(terms.length).toBeGreaterThan(20);
    expect(terms).toEqual([...new Set(terms)].toSorted((a, b) => a.localeCompare(b)));
    expect(read("docs/glossary.md").match(/^- /gm)).toHaveLength(terms.length);
  });

  test("has only terms that the code uses", () => {
    const code = ["server", "protocol", "agent-sim"].flatMap((folder) => filesIn(folder, ".ts").map(read)).join("\n");
    expect(terms.filter((term) => !new RegExp(`\\b${term.replaceAll(" ", "[ _-]?")}`, "i").test(code))).toEqual([]);
  });
});

describe("the decisions", () => {
  const files = filesIn("docs/decisions", ".md")
    .filter((path) => !path.endsWith("README.md"))
    .sort();

  test("are numbered without a gap, and the index names each by its title", () => {
    const titled = files.map((path, index) => {
      const number = String(index + 1).padStart(4, "0");
      const [, title = ""] = new RegExp(`^# ${number}: (.+)$`, "m").exec(read(path)) ?? [];
      return { path, number, title };
    });
    expect(titled.filter(({ path, number, title }) => title === "" || !path.startsWith(`docs/decisions/${number}-`))).toEqual([]);
    const index = read("docs/decisions/README.md");
    expect(titled.filter(({ path, title }) => !index.includes(`[${title}](${path.slice("docs/decisions/".length)})`))).toEqual([]);
  });

  test("state context, choice and consequence in at most 30 lines", () => {
    const headings = (path: string) => [...read(path).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    expect(files.filter((path) => headings(path).join() !== "Context,Choice,Consequence" || read(path).trimEnd().split("\n").length > 30)).toEqual([]);
  });
});

describe("every document", () => {
  test.each(DOCUMENTS)("%s links to files that exist", (document) => {
    const links = [...read(document).matchAll(/\]\((?!https?:|mailto:|#)([^)#]+)/g)].map(([, link = ""]) => link);
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(document), link)))).toEqual([]);
  });

  test.each(DOCUMENTS)("%s names paths and npm scripts that exist", (document) => {
    const text = read(document);
    const paths = [...text.matchAll(/`((?:server|protocol|agent-sim|prisma|test|docs)\/[\w./-]+)`/g)].map(([, path = ""]) => path);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Readonly<Record<string, string>> };
    const named = [...text.matchAll(/npm run (?:--silent )?([a-z][\w:]*)/g)].map(([, script = ""]) => script);
    expect(named.filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
  });
});
