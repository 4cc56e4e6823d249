// Imports, for samples. A plan goes straight into the table: making one by the API would leave records that the tests count.
import { gzipSync } from "node:zlib";
import { newId } from "../../../server/core/ids.ts";
import type { Stock } from "../stock.ts";

const HASH = "0".repeat(64);
const nothing = async () => ({});

export const newImport = async ({ world, tenant }: Pick<Stock, "world" | "tenant">): Promise<string> => {
  const importId = newId("imt");
  await world.sql.query(
    `with made as (insert into imports (tenant_id, import_id, format, origin, mode, conflict, send_invites, lenient, status, plan_hash, lines, counts, created_by, expires_at)
       values ($1, $2, 'manifest', 'written', 'merge', 'fail', false, false, 'ready', $3, 1, '{"unchanged": 1}', 'user:usr_x', now() + interval '1 day') returning tenant_id, import_id)
     insert into import_lines (tenant_id, import_id, n, line, kind, key, action, status) select tenant_id, import_id, 1, 3, 'fleet', 'lisbon', 'unchanged', 'succeeded' from made`,
    [tenant.tenantId, importId, HASH],
  );
  return importId;
};
/** An import whose file has not come. */
export const newUpload = async (stock: Pick<Stock, "world" | "tenant">): Promise<string> => {
  const importId = await newImport(stock);
  await stock.world.sql.query("update imports set status = 'uploading', format = 'export', received_bytes = 0 where import_id = $1", [importId]);
  return importId;
};
const anImport =
  (more: Record<string, unknown> = {}) =>
  async (stock: Stock) => ({ importId: await newImport(stock), ...more });

export const IMPORT_SAMPLES = {
  "imports.manifest": async () => ({ scopes: ["settings"] }),
  "imports.list": nothing,
  "imports.create": async () => ({ document: "format: mooring-manifest/1\nsettings: { defaultTimezone: UTC }\n" }),
  "imports.upload": async (stock: Stock) => ({ importId: await newUpload(stock), part: gzipSync("{}\n").toString("base64") }),
  "imports.get": anImport(),
  "imports.wait": anImport({ status: ["ready"], timeout: 1 }),
  "imports.report": anImport(),
  "imports.apply": async (stock: Stock) => {
    await stock.world.sql.query("update imports set status = 'cancelled' where tenant_id = $1", [stock.tenant.tenantId]);
    return { importId: await newImport(stock), planHash: HASH };
  },
  "imports.remove": anImport(),
};
