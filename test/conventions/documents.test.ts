// The documents match the code: every term of the glossary occurs in it, and every link, path and npm script exists. README stays short, nothing stands twice,
// and what a reader types step by step, a test runs.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { shellBlocksIn, stepsOf, WALKTHROUGHS } from "../release/walkthroughs.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const filesIn = (folder: string, ending: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending) && !name.startsWith("generated/"))
    .map((name) => `${folder}/${name}`);

const DOCUMENTS = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md") && name !== "CHANGELOG.md"),
  ...["docs", "protocol", "server", "test"].flatMap((folder) => filesIn(folder, ".md")),
];

/** The fragments that a document offers, as GitHub makes them from its headings. */
const anchorsIn = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );

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

  test.each(DOCUMENTS)("%s links to headings that exist", (document) => {
    const links = [...read(document).matchAll(/\]\((?!https?:|mailto:)([^)#]*)#([^)]+)\)/g)];
    const missing = links.filter(([, file = "", fragment = ""]) => !anchorsIn(read(file === "" ? document : join(dirname(document), file))).has(fragment));
    expect(missing.map(([link]) => link)).toEqual([]);
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

describe("the documents together", () => {
  /** A longer README hides its first five minutes. */
  const README_BYTES = 12_288;

  test(`README has at most ${README_BYTES} bytes and leads to every document`, () => {
    expect(Buffer.byteLength(read("README.md"))).toBeLessThanOrEqual(README_BYTES);
    const pages = DOCUMENTS.filter((path) => /^docs\/[\w-]+\.md$/.test(path));
    expect(pages.filter((path) => !read("README.md").includes(`](${path})`))).toEqual([]);
  });

  test("no paragraph, list item or row of a table stands twice", () => {
    const seen = new Map<string, string>();
    // Generated from schemas that are alike in places.
    const written = DOCUMENTS.filter((document) => document !== "protocol/fields.md");
    const twice = written.flatMap((document) =>
      read(document)
        .replaceAll(/```.*?```/gsu, "")
        .split(/\n\n|\n(?=[-|]|\d+\. )/)
        .map((paragraph) => paragraph.replaceAll(/\s+/g, " ").trim())
        .filter((paragraph) => paragraph.length >= 120)
        .flatMap((paragraph) => {
          const first = seen.get(paragraph);
          seen.set(paragraph, document);
          return first === undefined ? [] : [`${first} and ${document}: ${paragraph}`];
        }),
    );
    expect(seen.size).toBeGreaterThan(100);
    expect(twice).toEqual([]);
  });

  test("a test runs every shell step that continues the first five minutes", async () => {
    const run = new Set((await Promise.all(WALKTHROUGHS.map(stepsOf))).flat());
    const unrun = DOCUMENTS.flatMap((document) => shellBlocksIn(read(document)).map((block) => ({ document, block })))
      .filter(({ block }) => /\$(?:baseUrl|token|apiKey|tenantId|home)\b/.test(block) && !run.has(block))
      .map(({ document, block }) => `${document}: ${block}`);
    expect(unrun).toEqual([]);
  });

  test("CONTRIBUTING begins with set-up in three commands", () => {
    const [first = ""] = read("CONTRIBUTING.md").split("\n## ").slice(1);
    const [commands = ""] = shellBlocksIn(first);
    expect(first.split("\n")[0]).toBe("Set up");
    expect(commands.trim().split("\n")).toHaveLength(3);
  });
});
