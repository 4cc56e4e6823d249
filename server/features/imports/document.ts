// Reads the document of an import: YAML that people write, or the lines of a data export with their checksums. Nothing of it is trusted.
import { createHash } from "node:crypto";
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument, visit, type YAMLMap } from "yaml";
import { AppError } from "../../core/errors.ts";
import { isDeeperThan } from "../../core/rows/json-bounds.ts";
import { badInputName, unstorable } from "../../core/rows/storable.ts";

export const MANIFEST_FORMAT = "mooring-manifest/1";
const EXPORT_FORMAT = "mooring-export/1";
const SCHEMA_VERSION = 1;
const MAX_LINES = 5_000;
const MAX_DEPTH = 10;
/** YAML is read at some 500 bytes a millisecond, and nothing else runs meanwhile. */
const MAX_MANIFEST_BYTES = 262_144;
/** With room for those in texts. */
const MAX_BRACKETS = 40;
const QUOTED = 200;

export type Data = Readonly<Record<string, unknown>>;

/** A record that the document wants. */
export interface WantedLine {
  /** From 1, among the records of the document. */
  readonly n: number;
  /** In the text, from 1. */
  readonly line: number;
  readonly kind: string;
  /** Its id where it was exported. */
  readonly id: string | null;
  readonly data: Data;
}
export interface ReadDocument {
  readonly format: "export" | "manifest";
  readonly origin: "written" | "this" | "foreign";
  readonly lines: readonly WantedLine[];
}

export interface DocumentDeps {
  /** The kind of the records of a scope, and the other way round. */
  readonly kindOf: (scope: string) => string | undefined;
  readonly isKind: (kind: string) => boolean;
  /** The signature that this installation gives to a file of that digest. */
  readonly isSigned: (digest: string, signature: string) => boolean;
}

const invalid = (line: number | null, reason: string): AppError => new AppError("IMPORT_INVALID", { details: { line, reason: reason.slice(0, QUOTED) } });

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
const hasNumbers = (value: unknown): boolean =>
  typeof value === "number" ? Number.isFinite(value) : typeof value !== "object" || value === null || Object.values(value).every(hasNumbers);

const checked = (line: number, value: unknown): Data => {
  if (!isObject(value)) throw invalid(line, "a record must be an object");
  if (isDeeperThan(value, MAX_DEPTH)) throw invalid(line, `is nested deeper than ${MAX_DEPTH} levels`);
  const problem = unstorable(value, badInputName);
  if (problem !== null) throw invalid(line, problem);
  if (!hasNumbers(value)) throw invalid(line, "has a number that is none");
  if (value["tenantId"] !== undefined) throw invalid(line, "names a tenant");
  return value;
};

const bounded = (count: number): void => {
  if (count > MAX_LINES) throw invalid(MAX_LINES + 1, `has more than ${MAX_LINES} records`);
};

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
  if (Buffer.byteLength(text) > MAX_MANIFEST_BYTES) throw invalid(null, `a manifest has ${MAX_MANIFEST_BYTES} bytes at most`);
  if (deepestBracket(text) > MAX_BRACKETS || NESTED_IN_LINE.test(text)) throw invalid(null, `is nested deeper than ${MAX_DEPTH} levels`);
  try {
    // Its own look for a name that stands twice, and its sentences about many errors, take minutes for a hundred thousand of them.
    return parseDocument(text, { lineCounter, uniqueKeys: false, prettyErrors: false, version: "1.2", schema: "core", merge: false, logLevel: "error" });
  } catch {
    // The library recurses, and a text of a million brackets is deeper than the stack.
    throw invalid(null, "cannot be read");
  }
};

/** Aliases would let a small text stand for a large one; a name is a text. */
const refuseOddNodes = (parsed: Document.Parsed, lineOf: (node: unknown) => number): void =>
  visit(parsed, {
    Map: (_key, { items }) => {
      const names = new Set<unknown>();
      for (const { key } of items) {
        const name = isScalar(key) ? key.value : undefined;
        if (names.has(name)) throw invalid(lineOf(key), `names ${String(name)} twice`);
        names.add(name);
      }
    },
    Alias: (_key, node) => {
      throw invalid(lineOf(node), "aliases are not taken; write the value out");
    },
    Pair: (_key, { key }) => {
      if (!isScalar(key) || typeof key.value !== "string") throw invalid(lineOf(key), "the name of a field must be a text");
    },
    Scalar: (_key, node) => {
      if (typeof node.value === "object" && node.value !== null) throw invalid(lineOf(node), "has a value of an unknown type");
    },
  });

const readManifest = (text: string, { kindOf }: DocumentDeps): ReadDocument => {
  const counter = new LineCounter();
  const parsed = parseYaml(text, counter);
  const [error] = parsed.errors;
  if (error !== undefined) throw invalid(counter.linePos(error.pos[0]).line, error.message.split("\n")[0] ?? "cannot be read");
  if (!isMap(parsed.contents)) throw invalid(1, "must begin with `format: mooring-manifest/1` and have sections of records");
  const lineOf = (node: unknown): number => counter.linePos((node as { range?: readonly number[] | null }).range?.[0] ?? 0).line;
  refuseOddNodes(parsed, lineOf);
  const root = parsed.contents as YAMLMap<{ value?: unknown }, unknown>;
  const format = parsed.get("format");
  if (format !== MANIFEST_FORMAT) throw unsupported(format, MANIFEST_FORMAT);
  const lines: WantedLine[] = [];
  for (const { key, value } of root.items) {
    const section = String(key?.value);
    if (section === "format") continue;
    const kind = kindOf(section);
    if (kind === undefined) throw invalid(lineOf(key), `there is no section ${section}`);
    const nodes = section === "settings" || section === "rates" ? [value] : isSeq(value) ? value.items : null;
    if (nodes === null) throw invalid(lineOf(key), `${section} must be a list`);
    for (const node of nodes) {
      const line = lineOf(node ?? key);
      const data = (node as { toJS?: (doc: unknown) => unknown } | null)?.toJS?.(parsed) ?? null;
      lines.push({ n: lines.length + 1, line, kind, id: null, data: checked(line, data) });
      bounded(lines.length);
    }
  }
  return { format: "manifest", origin: "written", lines };
};

const unsupported = (found: unknown, known: string): AppError =>
  new AppError("IMPORT_VERSION_UNSUPPORTED", { details: { found: String(found).slice(0, QUOTED), known } });

const parseLine = (text: string, line: number): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // As below.
  }
  throw invalid(line, "is not an object in JSON");
};

/** Reads the lines after the first, one after the other, and checks each checksum as it comes. */
const createExportReader = (head: string, { isKind, isSigned }: DocumentDeps) => {
  const all = createHash("sha256").update(`${head}\n`);
  const lines: WantedLine[] = [];
  let section = createHash("sha256");
  let count = 0;
  let origin: ReadDocument["origin"] | null = null;

  const endSection = (read: Data, line: number): void => {
    if (read["sha256"] !== section.digest("hex") || read["count"] !== count) throw invalid(line, "the checksum of the section is another one");
    section = createHash("sha256");
    count = 0;
  };
  const end = (read: Data, line: number): void => {
    const digest = all.copy().digest("hex");
    if (read["sha256"] !== digest) throw invalid(line, "the checksum of the document is another one");
    origin = isSigned(digest, String(read["signature"])) ? "this" : "foreign";
  };
  const take = (read: Data, text: string, line: number): void => {
    const { kind, id } = read;
    if (typeof kind !== "string" || !isKind(kind)) throw invalid(line, "is of no known kind");
    if (typeof id !== "string") throw invalid(line, "has no id");
    section.update(`${text}\n`);
    count += 1;
    lines.push({ n: lines.length + 1, line, kind, id, data: checked(line, read["data"]) });
  };
  return {
    line: (text: string, line: number): void => {
      if (origin !== null) throw invalid(line, "follows the last line");
      const read = parseLine(text, line);
      if (read["kind"] === "#manifest-end") {
        end(read, line);
        return;
      }
      all.update(`${text}\n`);
      if (read["kind"] === "#end") endSection(read, line);
      else take(read, text, line);
    },
    finish: (line: number): ReadDocument => {
      if (origin === null) throw invalid(line, "the last line is missing");
      return { format: "export", origin, lines };
    },
  };
};

const readExport = (text: string, deps: DocumentDeps): ReadDocument => {
  const texts = text.endsWith("\n") ? text.slice(0, -1).split("\n") : text.split("\n");
  bounded(texts.length);
  const [head = "", ...rest] = texts;
  const { format, schemaVersion } = parseLine(head, 1);
  if (format !== EXPORT_FORMAT || schemaVersion !== SCHEMA_VERSION) throw unsupported(`${format} ${schemaVersion}`, `${EXPORT_FORMAT} ${SCHEMA_VERSION}`);
  const reader = createExportReader(head, deps);
  for (const [at, each] of rest.entries()) reader.line(each, at + 2);
  return reader.finish(texts.length + 1);
};

/** Throws IMPORT_INVALID with the line, or IMPORT_VERSION_UNSUPPORTED. */
export const readImport = (text: string, deps: DocumentDeps): ReadDocument => (text.startsWith("{") ? readExport(text, deps) : readManifest(text, deps));
