// Reads the manifests that people write: YAML without aliases, with a section for each kind of record.
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument, visit, type YAMLMap } from "yaml";
import { checkedRecord, type DocumentDeps, invalidDocument, MAX_DEPTH, type ReadDocument, unsupported, type WantedLine } from "./wanted.ts";

export const MANIFEST_FORMAT = "mooring-manifest/1";
/** YAML is read at some 500 bytes a millisecond, and nothing else runs meanwhile. */
const MAX_MANIFEST_BYTES = 262_144;
const MAX_RECORDS = 5_000;
/** With room for those in texts. */
const MAX_BRACKETS = 40;

/** Brackets that are open at once. The library recurses through them, and takes seconds for a text that is nothing else. */
const deepestBracket = (text: string): number => {
  let [open, deepest] = [0, 0];
  for (const sign of text) {
    if (sign === "[" || sign === "{") open += 1;
    else if (sign === "]" || sign === "}") open -= 1;
    deepest = Math.max(deepest, open);
  }
  return deepest;
};
/** Such as `- - - - x`, where each sign opens a level of its own. */
const NESTED_IN_LINE = /^[ \t]*(?:[-?:][ \t]+){12}/m;

const parseYaml = (text: string, lineCounter: LineCounter): Document.Parsed => {
  if (Buffer.byteLength(text) > MAX_MANIFEST_BYTES) throw invalidDocument(null, `a manifest has ${MAX_MANIFEST_BYTES} bytes at most`);
  if (deepestBracket(text) > MAX_BRACKETS || NESTED_IN_LINE.test(text)) throw invalidDocument(null, `is nested deeper than ${MAX_DEPTH} levels`);
  try {
    // Its own look for a name that stands twice, and its sentences about many errors, take minutes for a hundred thousand of them.
    return parseDocument(text, { lineCounter, uniqueKeys: false, prettyErrors: false, version: "1.2", schema: "core", merge: false, logLevel: "error" });
  } catch {
    // The library recurses, and a text of a million brackets is deeper than the stack.
    throw invalidDocument(null, "cannot be read");
  }
};

/** Aliases would let a small text stand for a large one; a name is a text. */
const refuseOddNodes = (parsed: Document.Parsed, lineOf: (node: unknown) => number): void =>
  visit(parsed, {
    Map: (_key, { items }) => {
      const names = new Set<unknown>();
      for (const { key } of items) {
        const name = isScalar(key) ? key.value : undefined;
        if (names.has(name)) throw invalidDocument(lineOf(key), `names ${String(name)} twice`);
        names.add(name);
      }
    },
    Alias: (_key, node) => {
      throw invalidDocument(lineOf(node), "aliases are not taken; write the value out");
    },
    Pair: (_key, { key }) => {
      if (!isScalar(key) || typeof key.value !== "string") throw invalidDocument(lineOf(key), "the name of a field must be a text");
    },
    Scalar: (_key, node) => {
      if (typeof node.value === "object" && node.value !== null) throw invalidDocument(lineOf(node), "has a value of an unknown type");
    },
  });

/** The records of a section; null if they are no list. */
const nodesOf = (section: string, value: unknown): readonly unknown[] | null => {
  if (section === "settings" || section === "rates") return [value];
  return isSeq(value) ? value.items : null;
};

export const readManifestText = (text: string, { kindOf }: DocumentDeps): ReadDocument => {
  const counter = new LineCounter();
  const parsed = parseYaml(text, counter);
  const [error] = parsed.errors;
  if (error !== undefined) throw invalidDocument(counter.linePos(error.pos[0]).line, error.message.split("\n")[0] ?? "cannot be read");
  if (!isMap(parsed.contents)) throw invalidDocument(1, "must begin with `format: mooring-manifest/1` and have sections of records");
  const lineOf = (node: unknown): number => counter.linePos((node as { range?: readonly number[] | null }).range?.[0] ?? 0).line;
  refuseOddNodes(parsed, lineOf);
  const root = parsed.contents as YAMLMap<{ value?: unknown }, unknown>;
  const format = parsed.get("format");
  if (format !== MANIFEST_FORMAT) throw unsupported(format, MANIFEST_FORMAT);
  const lines: WantedLine[] = [];
  const kinds = new Set<string>();
  for (const { key, value } of root.items) {
    const section = String(key?.value);
    if (section === "format") continue;
    const kind = kindOf(section);
    if (kind === undefined) throw invalidDocument(lineOf(key), `there is no section ${section}`);
    kinds.add(kind);
    const nodes = nodesOf(section, value);
    if (nodes === null) throw invalidDocument(lineOf(key), `${section} must be a list`);
    for (const node of nodes) {
      const line = lineOf(node ?? key);
      const data = (node as { toJS?: (doc: unknown) => unknown } | null)?.toJS?.(parsed) ?? null;
      lines.push({ n: lines.length + 1, line, kind, id: null, data: checkedRecord(line, data) });
      if (lines.length > MAX_RECORDS) throw invalidDocument(line, `is one more than the ${MAX_RECORDS} records that a manifest has at most`);
    }
  }
  return { format: "manifest", origin: "written", lines, kinds };
};
