// What stands in the file of an export: a manifest, the sections and the signature, or the lines of one section as CSV.
import { csvLine } from "../../core/rows/csv.ts";
import type { TenantScope } from "../../core/scope.ts";
import { type AllHandlers, columnsOf, exportLine, type Fields, type Line, pagesOf, type Section, sectionsOf } from "./sections.ts";
import type { ExportRow } from "./store.ts";
import { EXPORT_FORMAT, type FileWriter } from "./writer.ts";

export type Counts = Readonly<Record<string, number>>;

export interface ExportContents {
  readonly row: ExportRow;
  readonly writer: FileWriter;
  readonly handlers: AllHandlers;
  readonly head: { readonly exportedAt: string; readonly gatewayVersion: string };
  /** Reads within the snapshot. */
  readonly read: <T>(work: () => Promise<T>) => Promise<T>;
  /** The reader of the section, with the access of that moment. */
  readonly beginSection: (kind: string, counts: Counts) => Promise<TenantScope>;
  /** Lets the calls of others through, for as long as the page before took. Throws when all has taken too long. */
  readonly breathe: () => Promise<void>;
}

const boundsOf = ({ between: [from, to] = ["", ""] }: Section, row: ExportRow): Fields =>
  Object.fromEntries(
    [
      [from, row.from],
      [to, row.to],
    ].flatMap(([name, at]) => (name === "" || !(at instanceof Date) ? [] : [[name, at.toISOString()]])),
  );

/** The inputs of the lists that make up a section: one, or one for each record of the section that it belongs to. */
const inputsOf = (section: Section, row: ExportRow, owners: readonly string[]): readonly Fields[] => {
  if (section.kind === "settings") return [{ tenantId: row.tenantId }];
  return section.each === undefined ? [boundsOf(section, row)] : owners.map((id) => ({ [`${section.each}Id`]: id }));
};

const pagesIn = async function* (contents: ExportContents, scope: TenantScope, section: Section, owners: readonly string[]): AsyncGenerator<readonly Line[]> {
  const { handlers, row, read, breathe } = contents;
  for (const input of inputsOf(section, row, owners)) {
    const pages = pagesOf(handlers, scope, section, input);
    for (let next = await read(() => pages.next()); next.done !== true; next = await read(() => pages.next())) {
      await breathe();
      const records = section.only === undefined ? next.value : next.value.filter(section.only);
      if (records.length > 0) yield records.map((record) => exportLine(section, record));
    }
  }
};

const cell = (value: unknown): unknown => (typeof value === "object" && value !== null ? JSON.stringify(value) : value);

export const writeContents = async (contents: ExportContents): Promise<Counts> => {
  const { row, writer, head, beginSection } = contents;
  const { format, tenantId, scopes, from, to } = row;
  const isText = format === "ndjson";
  const counts: Record<string, number> = {};
  const sections = sectionsOf(scopes);
  const owners = new Map<string, string[]>(sections.flatMap(({ each }) => (each === undefined ? [] : [[each, []]])));
  if (isText)
    await writer.head(
      `${JSON.stringify({ kind: "#manifest", format: EXPORT_FORMAT, schemaVersion: 1, ...head, tenantId, scopes, from, to, snapshot: true })}\n`,
    );
  for (const section of isText ? sections : sections.slice(0, 1)) {
    const { kind, each = "" } = section;
    const scope = await beginSection(kind, counts);
    const columns = isText ? [] : columnsOf(section);
    if (!isText) await writer.head(csvLine(columns));
    for await (const lines of pagesIn(contents, scope, section, owners.get(each) ?? [])) {
      owners.get(kind)?.push(...lines.map(({ id }) => id));
      const texts = lines.map((line) => (isText ? `${JSON.stringify(line)}\n` : csvLine(columns.map((name) => cell(line.data[name])))));
      await writer.records(texts.join(""), texts.length);
    }
    counts[kind] = await writer.endSection(kind, isText);
  }
  if (isText) await writer.sign(counts);
  return counts;
};
