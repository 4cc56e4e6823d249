// Data exports for samples, in the state that each call needs.

import { createChunkBox } from "../../../server/core/chunk-box.ts";
import { newId } from "../../../server/core/ids.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import type { Stock } from "../../contract/stock.ts";
import type { TestTenant, World } from "../../kit/gateway/world.ts";

/** Every world has this master key. */
const BOX = createChunkBox(createSecretBox(Buffer.alloc(32, 7)), "data export chunks");

/** No node makes it: it has ended, or there is none that could. */
export const insertExport = async (world: World, { tenantId }: Pick<TestTenant, "tenantId">, status: string): Promise<{ exportId: string }> => {
  const exportId = newId("exp");
  await world.sql.query(
    `with made as (insert into data_exports (export_id, tenant_id, scopes, format, status, size_bytes, expires_at, created_by, updated_at)
       values ($1, $2, '{views}', 'ndjson', $3, 4, now() + interval '1 d', 'user:somebody', now()) returning tenant_id, export_id)
     insert into data_export_chunks (tenant_id, export_id, part, bytes) select tenant_id, export_id, 0, $4 from made`,
    [exportId, tenantId, status, BOX.seal(Buffer.from("file"), exportId, 0)],
  );
  return { exportId };
};

export const completedExport = ({ world, tenant }: Stock) => insertExport(world, tenant, "completed");

export const EXPORT_SAMPLES = {
  "dataExports.list": async () => ({}),
  "dataExports.create": async ({ world, tenant }: Stock) => {
    await world.sql.query("delete from data_exports where tenant_id = $1", [tenant.tenantId]);
    return { scopes: ["views"] };
  },
  "dataExports.get": completedExport,
  "dataExports.wait": async (stock: Stock) => ({ ...(await completedExport(stock)), status: ["completed"], timeout: 0 }),
  "dataExports.download": completedExport,
  "dataExports.link": completedExport,
  "dataExports.downloadByLink": async ({ world, tenant, owner }: Stock) => {
    const { exportId } = await insertExport(world, tenant, "completed");
    const { body } = await world.call(owner, "POST", `/v1/exports/${exportId}/link`);
    return { token: new URL(body.data.url).searchParams.get("token") };
  },
  "dataExports.remove": completedExport,
} as const;
