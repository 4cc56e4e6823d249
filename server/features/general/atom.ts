// The changelog as an Atom feed (RFC 4287).
import type { Release } from "./rules.ts";

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&apos;"],
]);
/** Text of an element or an attribute. XML has no form for control characters and halves of a character. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that XML forbids
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "")
    .replace(/[&<>"']/g, (sign) => ESCAPES.get(sign) ?? sign);

const momentOf = (date: string): string => `${date}T00:00:00Z`;

const entryOf = (name: string, version: string, changes: readonly Release[]): string => `  <entry>
    <id>tag:mooring,2026:release:${escaped(version)}</id>
    <title>${escaped(`${name} ${version}`)}</title>
    <updated>${momentOf(changes[0]?.date ?? "")}</updated>
    <content type="text">${escaped(changes.map(({ type, title }) => `${type}: ${title}`).join("\n"))}</content>
  </entry>
`;

export interface Feed {
  readonly name: string;
  /** Its own URL. */
  readonly self: string;
}

/** One entry per release. What has no date yet is not released. */
export const atomOf = ({ name, self }: Feed, changes: readonly Release[]): string => {
  const released = changes.filter(({ date }) => date !== "");
  const versions = [...new Set(released.map(({ version }) => version))];
  const newest =
    released
      .map(({ date }) => date)
      .sort()
      .at(-1) ?? "1970-01-01";
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <id>tag:mooring,2026:releases</id>
  <title>${escaped(`${name} releases`)}</title>
  <updated>${momentOf(newest)}</updated>
  <link rel="self" type="application/atom+xml" href="${escaped(self)}"/>
  <author><name>${escaped(name)}</name></author>
${versions
  .map((version) =>
    entryOf(
      name,
      version,
      released.filter((change) => change.version === version),
    ),
  )
  .join("")}</feed>
`;
};
