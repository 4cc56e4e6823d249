// Reads the lines of a data export one after the other, and checks each checksum as it comes.
import { createHash, type Hash } from "node:crypto";
import { checkedRecord, type Data, type DocumentDeps, invalidDocument, isObject, type ReadDocument, unsupported, type WantedLine } from "./wanted.ts";

const EXPORT_FORMAT = "mooring-export/1";
const SCHEMA_VERSION = 1;

const parseLine = (text: string, line: number): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // As below.
  }
  throw invalidDocument(line, "is not an object in JSON");
};

/** Takes whole lines, without their ends. */
export class ExportReader {
  readonly #deps: DocumentDeps;
  readonly #all: Hash = createHash("sha256");
  #section: Hash = createHash("sha256");
  #count = 0;
  #line = 0;
  #records = 0;
  #origin: ReadDocument["origin"] | null = null;
  /** The kinds whose sections have ended. */
  readonly kinds = new Set<string>();

  constructor(deps: DocumentDeps) {
    this.#deps = deps;
  }

  /** The record of the line; null for a line about the document. */
  take(text: string): WantedLine | null {
    this.#line += 1;
    if (this.#origin !== null) throw invalidDocument(this.#line, "follows the last line");
    const read = parseLine(text, this.#line);
    if (read["kind"] === "#manifest-end") {
      this.#end(read);
      return null;
    }
    this.#all.update(`${text}\n`);
    if (this.#line === 1) this.#begin(read);
    else if (read["kind"] === "#end") this.#endSection(read);
    else return this.#record(read, text);
    return null;
  }

  /** Says which installation has signed it. */
  finish(): ReadDocument["origin"] {
    if (this.#origin === null) throw invalidDocument(this.#line + 1, "the last line is missing");
    return this.#origin;
  }

  #begin({ format, schemaVersion }: Data): void {
    if (format !== EXPORT_FORMAT || schemaVersion !== SCHEMA_VERSION) throw unsupported(`${format} ${schemaVersion}`, `${EXPORT_FORMAT} ${SCHEMA_VERSION}`);
  }

  #endSection({ section, sha256, count }: Data): void {
    if (sha256 !== this.#section.digest("hex") || count !== this.#count) throw invalidDocument(this.#line, "the checksum of the section is another one");
    this.#section = createHash("sha256");
    this.#count = 0;
    if (typeof section === "string" && this.#deps.isKind(section)) this.kinds.add(section);
  }

  #end({ sha256, signature }: Data): void {
    const digest = this.#all.digest("hex");
    if (sha256 !== digest) throw invalidDocument(this.#line, "the checksum of the document is another one");
    this.#origin = this.#deps.isSigned(digest, String(signature)) ? "this" : "foreign";
  }

  #record({ kind, id, data }: Data, text: string): WantedLine {
    if (typeof kind !== "string" || !this.#deps.isKind(kind)) throw invalidDocument(this.#line, "is of no known kind");
    if (typeof id !== "string") throw invalidDocument(this.#line, "has no id");
    this.#section.update(`${text}\n`);
    this.#count += 1;
    this.#records += 1;
    return { n: this.#records, line: this.#line, kind, id, data: checkedRecord(this.#line, data) };
  }
}
