// Writes a feature below a root: its new files, and its lines in existing files. It throws before the first write if a name or a place does not fit.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { applied, EDITS, FILES } from "./edits.ts";
import { fill, type GivenNames, namesOf, type Taken } from "./names.ts";

const TEMPLATES = new URL("templates/", import.meta.url);

const takenIn = (root: string): Taken => {
  const read = (file: string): string => readFileSync(join(root, file), "utf8");
  const matches = (text: string, pattern: RegExp): readonly string[] => [...text.matchAll(pattern)].map(([, name = ""]) => name);
  const [, names = ""] = /ID_NAMES[^[]*\[([\s\S]*?)\]\);/.exec(read("protocol/kit/ids.ts")) ?? [];
  return {
    features: readdirSync(join(root, "server/features")),
    prefixes: matches(names, /\["(\w+)",/g),
    models: readdirSync(join(root, "prisma/schema")).flatMap((file) => matches(read(`prisma/schema/${file}`), /^model (\w+)/gm)),
  };
};

/** The timestamp of a migration, later than that of every existing one. */
const stampAfter = (root: string, now: Date): string => {
  const stamp = now.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14);
  const last = readdirSync(join(root, "prisma/migrations"))
    .filter((name) => /^\d{14}_/.test(name))
    .sort()
    .at(-1)
    ?.slice(0, 14);
  return last !== undefined && last >= stamp ? String(BigInt(last) + 1n) : stamp;
};

export interface Written {
  readonly created: readonly string[];
  readonly changed: readonly string[];
}

/** Throws NameError before it writes anything. */
export const writeFeature = (root: string, given: GivenNames, now: Date): Written => {
  const names = namesOf(given, takenIn(root));
  const stamp = stampAfter(root, now);
  const created = Object.entries(FILES).map(([template, path]): [string, string] => [
    fill(path, names).replace("{{stamp}}", stamp),
    fill(readFileSync(new URL(`${template}.txt`, TEMPLATES), "utf8"), names),
  ]);
  const changed = new Map<string, string>();
  for (const edit of EDITS) {
    const text = changed.get(edit.file) ?? readFileSync(join(root, edit.file), "utf8");
    changed.set(edit.file, applied(text, edit, fill(edit.text, names)));
  }
  for (const [path, text] of [...created, ...changed]) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return { created: created.map(([path]) => path), changed: [...changed.keys()] };
};
