// Reads a document that comes with its call: YAML that people write, or the lines of a data export.
import { ExportReader } from "./export-reader.ts";
import { readManifestText } from "./manifest-reader.ts";
import { type DocumentDeps, invalidDocument, type ReadDocument } from "./wanted.ts";

const MAX_LINES = 5_000;

const readExport = (text: string, deps: DocumentDeps): ReadDocument => {
  const texts = (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
  if (texts.length > MAX_LINES) throw invalidDocument(MAX_LINES + 1, `a document that comes with the call has ${MAX_LINES} lines at most; upload a longer one`);
  const reader = new ExportReader(deps);
  const lines = texts.flatMap((each) => reader.take(each) ?? []);
  return { format: "export", origin: reader.finish(), lines, kinds: reader.kinds };
};

/** Throws IMPORT_INVALID with the line, or IMPORT_VERSION_UNSUPPORTED. */
export const readImport = (text: string, deps: DocumentDeps): ReadDocument => (text.startsWith("{") ? readExport(text, deps) : readManifestText(text, deps));
