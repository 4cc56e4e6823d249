// Documents of imports, for tests.
import { createHash } from "node:crypto";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The lines of an export from another installation, with right checksums: the data of records, by their kinds. */
export const documentOf = (sections: Readonly<Record<string, readonly object[]>>): string => {
  const texts = [JSON.stringify({ kind: "#manifest", format: "mooring-export/1", schemaVersion: 1 })];
  for (const [section, records] of Object.entries(sections)) {
    const lines = records.map((data, at) => JSON.stringify({ kind: section, id: `x${at}`, key: "", v: null, data, refs: [] }));
    texts.push(...lines, JSON.stringify({ kind: "#end", section, count: lines.length, sha256: sha256(lines.map((line) => `${line}\n`).join("")) }));
  }
  const all = texts.map((text) => `${text}\n`).join("");
  return `${all}${JSON.stringify({ kind: "#manifest-end", counts: {}, sha256: sha256(all), signature: "" })}\n`;
};
