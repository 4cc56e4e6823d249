// How each error of bulk operations comes about.
import { newId } from "../../server/core/ids.ts";
import { asBearer } from "../kit/gateway/world.ts";
import { BULK_SAMPLES } from "./samples/bulk-operations.ts";
import { call, done, fresh, own, type Probe, type Stage } from "./scenario.ts";

export const BULK_SCENARIOS = {
  BULK_OPERATION_NOT_FOUND: (at: Stage, probe: Probe) => probe(own(at, "GET", "/bulk-operations/blk_unknown")),
  BULK_NO_TARGETS: (at: Stage, probe: Probe) =>
    probe(own(at, "POST", "/bulk-operations", { body: { operation: "app.stop", target: { appIds: ["app_unknown"] } } })),
  BULK_PART_INVALID: async (at: Stage, probe: Probe) => {
    const { operationId, part, lines }: Record<string, unknown> = await BULK_SAMPLES["bulkOperations.uploadItems"](at.stock, "");
    const headers = { "content-type": "application/x-ndjson" };
    await probe(own(at, "POST", `/bulk-operations/${operationId}/items?part=${part}&sha256=${"0".repeat(64)}`, { rawBody: String(lines), headers }));
  },
  BULK_TARGET_LIMIT_EXCEEDED: async ({ world }: Stage, probe: Probe) => {
    const userId = newId("usr");
    const as = asBearer((await world.app.mint({ userId, ttlSeconds: 600 })).token);
    const { tenantId } = await done(world, as, "POST /tenants", { body: { name: "Few", slug: "few-targets", userId } });
    const headers = { "x-svc-tenant-id": tenantId };
    const [{ device_id }] = await done(world, as, "POST /devices/provision", { body: { count: 1 }, headers });
    const deviceIds = [device_id, ...Array.from({ length: 60 }, (_, n) => `dev_${n}`)];
    await probe(
      call(world, "POST", "/bulk-operations", { as, body: { operation: "device.command", params: { type: "ping" }, target: { deviceIds } }, headers }),
    );
  },
  BULK_LIMIT_REACHED: async (at: Stage, probe: Probe) => {
    const { owner, tenant } = await fresh(at);
    const { deviceId } = await tenant.device();
    const startAt = new Date(Date.now() + 3_600_000).toISOString();
    const body = { operation: "device.command", params: { type: "ping" }, target: { deviceIds: [deviceId] }, startAt };
    for (let made = 0; made < 50; made += 1) await done(at.world, owner, "POST /bulk-operations", { body });
    await probe(call(at.world, "POST", "/bulk-operations", { as: owner, body }));
  },
} as const;
