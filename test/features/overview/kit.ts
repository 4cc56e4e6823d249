// A tenant with a device that never connected, and rows of its own.
import type { Stock } from "../../contract/stock.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import type { World } from "../../kit/gateway/world.ts";

export type Own = Pick<Stock, "world" | "tenant" | "device" | "owner">;

export const openTenant = async (world: World): Promise<Own> => {
  const tenant = await world.tenant();
  return { world, tenant, device: await tenant.device(), owner: await tenant.user("owner") };
};
export const insert = ({ world, tenant }: Own, table: string, row: object) => insertRow(world.sql, table, { tenant_id: tenant.tenantId, ...row });
