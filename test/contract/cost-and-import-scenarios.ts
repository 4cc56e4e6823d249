// Provokes the error codes of costs, imports and batches.
import { IMPORT_SAMPLES, newUpload } from "./samples/imports.ts";
import { call, done, own, type Scenario } from "./scenario.ts";

export const COST_AND_IMPORT_SCENARIOS = {
  BATCH_PATH_NOT_ALLOWED: (at, probe) => probe(own(at, "POST", "/batch", { body: { requests: [{ id: "a", method: "GET", path: "/health" }] } })),
  BUDGET_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/costs/budgets/bud_unknown")),
  COST_RATES_MISSING: async ({ odd }, probe) => probe(call(odd, "GET", "/costs/summary", { as: (await odd.tenant()).apiKey })),
  COST_RATES_INVALID: (at, probe) => probe(own(at, "PUT", "/costs/rates", { body: { currency: "ZZZ", device: {} } })),
  COST_WINDOW_INVALID: (at, probe) => probe(own(at, "GET", "/costs/summary?window=13mo")),
  CURRENCY_MISMATCH: async (at, probe) => {
    await done(at.world, at.stock.owner, "PUT /costs/rates", { body: { currency: "EUR", device: {} } });
    await probe(own(at, "PUT", "/costs/rates", { body: { currency: "USD", device: {} } }));
  },
  EXPORT_LINK_INVALID: ({ world }, probe) => probe(call(world, "GET", "/export/file?token=none.none")),
  IMPORT_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/imports/imt_unknown")),
  IMPORT_INVALID: (at, probe) => probe(own(at, "POST", "/imports", { body: { document: "format: mooring-manifest/1\nrockets: []" } })),
  IMPORT_VERSION_UNSUPPORTED: (at, probe) => probe(own(at, "POST", "/imports", { body: { document: "format: mooring-manifest/9" } })),
  IMPORT_PLAN_CHANGED: async (at, probe) => {
    const { importId } = await IMPORT_SAMPLES["imports.get"](at.stock);
    await probe(own(at, "POST", `/imports/${importId}/apply`, { body: { planHash: "1".repeat(64) } }));
  },
  IMPORT_IN_PROGRESS: async (at, probe) => {
    const [{ importId: other }, { importId, planHash }] = [await IMPORT_SAMPLES["imports.get"](at.stock), await IMPORT_SAMPLES["imports.apply"](at.stock)];
    await at.world.sql.query("update imports set status = 'applying' where import_id = $1", [other]);
    await probe(own(at, "POST", `/imports/${importId}/apply`, { body: { planHash } }));
  },
  IMPORT_UPLOAD_INVALID: async (at, probe) => {
    const headers = { "content-range": "bytes 0-9/100" };
    await probe(own(at, "POST", `/imports/${await newUpload(at.stock)}/upload`, { rawBody: "0123456789", headers }));
  },
  IMPORT_UPLOAD_OFFSET: async (at, probe) => {
    const headers = { "content-range": "bytes 90-99/100" };
    await probe(own(at, "POST", `/imports/${await newUpload(at.stock)}/upload`, { rawBody: "0123456789", headers }));
  },
  IMPORT_DELETES_UNCONFIRMED: async (at, probe) => {
    const { importId, planHash } = await IMPORT_SAMPLES["imports.apply"](at.stock);
    await at.world.sql.query("update imports set deletes_to_confirm = 7 where import_id = $1", [importId]);
    await probe(own(at, "POST", `/imports/${importId}/apply`, { body: { planHash } }));
  },
  EXPORT_TOO_LARGE: async (at, probe) => {
    await at.world.sql.query(
      "insert into fleets (fleet_id, tenant_id, name, created_by, updated_at) select 'flt_' || lpad(n::text, 26, '0'), $1, 'fleet ' || n, 'user:usr_x', now() from generate_series(1, 5001) n",
      [at.stock.tenant.tenantId],
    );
    await probe(own(at, "GET", "/export?scopes=fleets"));
    await at.world.sql.query("delete from fleets where tenant_id = $1 and name like 'fleet %'", [at.stock.tenant.tenantId]);
  },
} satisfies Readonly<Record<string, Scenario>>;
