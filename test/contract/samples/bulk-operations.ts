// Bulk operations and exports for samples, in the state that each call needs.
import { createHash } from "node:crypto";
import { EXPORT_SAMPLES } from "../../features/data-exports/samples.ts";
import type { Stock } from "../stock.ts";

type Input = Readonly<Record<string, unknown>>;
/** `userId` made it: a limited caller sees one's own only. */
type Sample = (stock: Stock, userId: string) => Promise<Input>;

const ON_DEVICE = { operation: "device.command", params: { type: "ping" } } as const;
const later = (): string => new Date(Date.now() + 3_600_000).toISOString();

export const newBulkOperation = async ({ world, tenant, owner, device }: Stock, userId: string, more: Input = {}): Promise<{ operationId: string }> => {
  // A tenant has 50 that have not ended.
  const clear = async (table: string, more: string): Promise<void> =>
    void (await world.sql.query(`delete from ${table} where tenant_id = $1 ${more}`, [tenant.tenantId]));
  // A step locks its work first, and then the operation.
  await clear("many_work", "");
  await clear("bulk_operations", "and created_at < now() - interval '1 s'");
  const body = { ...ON_DEVICE, target: { deviceIds: [device.deviceId] }, startAt: later(), ...more };
  const answer = await world.call(owner, "POST", "/v1/bulk-operations", { body });
  if (answer.status !== 201) throw new Error(`setup failed with ${answer.status}: ${JSON.stringify(answer.body)}`);
  const { operationId } = answer.body.data;
  if (userId !== "") await world.sql.query("update bulk_operations set created_by = $2 where operation_id = $1", [operationId, `user:${userId}`]);
  return { operationId };
};

const inStatus = async (stock: Stock, userId: string, columns: string): Promise<Input> => {
  const { operationId } = await newBulkOperation(stock, userId);
  await stock.world.sql.query(`update bulk_operations set ${columns} where operation_id = $1`, [operationId]);
  return { operationId };
};

const draft: Sample = (stock, userId) => newBulkOperation(stock, userId, { target: { upload: true } });
const partOf = ({ device }: Stock) => {
  const lines = `${JSON.stringify({ id: device.deviceId })}\n`;
  return { part: 1, sha256: createHash("sha256").update(lines).digest("hex"), lines };
};
/** Starting it begins nothing yet. */
const filled: Sample = async (stock, userId) => {
  const one = await draft(stock, userId);
  const { lines, part, sha256 } = partOf(stock);
  await stock.world.sql.query(
    `with item as (insert into bulk_items (tenant_id, operation_id, n, target_id) values ($1, $2, 1, $3)),
     sent as (insert into bulk_parts (tenant_id, operation_id, part, sha256, added) values ($1, $2, $4, $5, $6))
     update bulk_operations set total = 1, pending = 1 where operation_id = $2`,
    [stock.tenant.tenantId, one["operationId"], stock.device.deviceId, part, Buffer.from(sha256, "hex"), lines.split("\n").length - 1],
  );
  return one;
};

export const BULK_SAMPLES = {
  ...EXPORT_SAMPLES,
  "bulkOperations.list": async () => ({}),
  "bulkOperations.create": async ({ device }: Stock) => ({ ...ON_DEVICE, target: { deviceIds: [device.deviceId] }, startAt: later() }),
  "bulkOperations.preview": async ({ device }: Stock) => ({ ...ON_DEVICE, target: { deviceIds: [device.deviceId] } }),
  "bulkOperations.get": (stock: Stock, userId: string) => newBulkOperation(stock, userId),
  "bulkOperations.wait": async (stock: Stock, userId: string) => ({ ...(await newBulkOperation(stock, userId)), status: ["pending"], timeout: 0 }),
  "bulkOperations.listItems": (stock: Stock, userId: string) => newBulkOperation(stock, userId),
  // One that goes on would keep its reader.
  "bulkOperations.results": (stock: Stock, userId: string) => inStatus(stock, userId, "status = 'cancelled', cancelled = 1, pending = 0, completed_at = now()"),
  "bulkOperations.uploadItems": async (stock: Stock, userId: string) => ({ ...(await draft(stock, userId)), ...partOf(stock) }),
  "bulkOperations.start": filled,
  "bulkOperations.pause": (stock: Stock, userId: string) => newBulkOperation(stock, userId),
  "bulkOperations.resume": (stock: Stock, userId: string) => inStatus(stock, userId, "status = 'paused'"),
  "bulkOperations.cancel": async (stock: Stock, userId: string) => ({ ...(await newBulkOperation(stock, userId)), reason: "the wrong devices" }),
  "bulkOperations.retryFailed": async (stock: Stock, userId: string) => {
    const one = await inStatus(stock, userId, "status = 'completed_with_errors', failed = 1, pending = 0, completed_at = now()");
    await stock.world.sql.query("update bulk_items set status = 'failed', code = 'COMMAND_EXPIRED' where operation_id = $1", [one["operationId"]]);
    return one;
  },
};
