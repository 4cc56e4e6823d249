// `npm run docs:schemas`: writes the JSON Schemas of the agent protocol to protocol/schemas, removes obsolete files, and lists all fields in protocol/fields.md.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { fieldsText, schemaFiles } from "./schemas.ts";

export const SCHEMAS = new URL("../../protocol/schemas/", import.meta.url);
export const FIELDS = new URL("../../protocol/fields.md", import.meta.url);

if (process.argv[1] === import.meta.filename) {
  await rm(SCHEMAS, { recursive: true, force: true });
  for (const [name, text] of schemaFiles()) {
    const path = fileURLToPath(new URL(name, SCHEMAS));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  await writeFile(FIELDS, fieldsText());
}
