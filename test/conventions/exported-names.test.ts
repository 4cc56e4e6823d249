// One exported name means one thing in all sources, so a search for it finds one definition.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DECLARATION = /^export (?:declare |abstract |async )*(?:const|let|function\*?|class|interface|type) (\w+)/gm;

/** Names with two meanings, each for a reason. A guide shares the name of its group; that needs no reason here. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  createAgent: "the reference agent, and the feature of the group `agent`: every feature's factory has its group's name",
  App: "the gateway's process, and what people install on a device",
  CommandType: "what a group declares, and what the queue knows of a type",
  Plan: "what a tenant pays for, and the check of its limits",
};

interface Source {
  readonly file: string;
  readonly text: string;
}

const isGroupWithGuide = (files: readonly string[]): boolean => {
  const places = files.map((file) => /^protocol\/(groups|guide)\/(?:[\w-]+\/)?([\w-]+\.ts)$/.exec(file));
  return files.length === 2 && places[0]?.[2] !== undefined && places[0][2] === places[1]?.[2];
};

/** Names that several files declare. A type and a value of one name in one file count once. */
const ambiguous = (sources: readonly Source[]): ReadonlyMap<string, readonly string[]> => {
  const declared = new Map<string, Set<string>>();
  for (const { file, text } of sources) for (const [, name = ""] of text.matchAll(DECLARATION)) declared.set(name, (declared.get(name) ?? new Set()).add(file));
  const found = [...declared].map(([name, files]) => [name, [...files]] as const);
  return new Map(found.filter(([, files]) => files.length > 1 && !isGroupWithGuide(files)));
};

const SOURCES = ["server", "protocol", "agent-sim"].flatMap((folder) =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => ({ file: `${folder}/${name}`, text: readFileSync(`${ROOT}${folder}/${name}`, "utf8") })),
);

test("an exported name means one thing in server, protocol and agent-sim", () => {
  const unexplained = [...ambiguous(SOURCES)].filter(([name]) => !(name in EXCEPTIONS));
  expect(Object.fromEntries(unexplained)).toEqual({});
});

test("every exception is still needed", () => {
  const found = ambiguous(SOURCES);
  expect(Object.keys(EXCEPTIONS).filter((name) => !found.has(name))).toEqual([]);
});

test("a name with two definitions is found; re-exports, a type beside its value, and guides are not", () => {
  const sources: readonly Source[] = [
    { file: "server/a.ts", text: "export interface Plan {}\nexport const Row = 1;\nexport type Row = number;" },
    { file: "server/b.ts", text: 'export class Plan {}\nexport { Row } from "./a.ts";' },
    { file: "protocol/groups/access/roles.ts", text: "export const roles = 1;" },
    { file: "protocol/guide/access/roles.ts", text: "export const roles = 2;" },
    { file: "protocol/groups/apps.ts", text: "export const apps = 1;" },
    { file: "protocol/guide/apps.ts", text: "export const apps = 2;" },
    { file: "server/c.ts", text: "export async function open() {}" },
    { file: "agent-sim/d.ts", text: "export const open = 1;" },
  ];
  expect(Object.fromEntries(ambiguous(sources))).toEqual({ Plan: ["server/a.ts", "server/b.ts"], open: ["server/c.ts", "agent-sim/d.ts"] });
});
