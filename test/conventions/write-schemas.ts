// `npm run docs:schemas`: writes the JSON Schemas of the agent protocol to protocol/schemas, and removes obsolete files.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { schemaFiles } from "./schemas.ts";

export const SCHEMAS = new URL("../../protocol/schemas/", import.meta.url);

if (process.argv[1] === import.meta.filename) {
  await rm(SCHEMAS, { recursive: true, force: true });
  for (const [name, text] of schemaFiles()) {
    const path = fileURLToPath(new URL(name, SCHEMAS));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
}
