// How each error of data exports comes about.
import { call, fresh, own, type Probe, type Stage } from "../../contract/scenario.ts";
import { completedExport, insertExport } from "./samples.ts";

export const EXPORT_SCENARIOS = {
  EXPORT_NOT_FOUND: (at: Stage, probe: Probe) => probe(own(at, "GET", "/exports/exp_unknown")),
  EXPORT_IN_PROGRESS: async (at: Stage, probe: Probe) => {
    const { owner, tenant } = await fresh(at);
    await insertExport(at.world, tenant, "running");
    await probe(call(at.world, "POST", "/exports", { as: owner, body: { scopes: ["views"] } }));
  },
  EXPORT_NOT_READY: async (at: Stage, probe: Probe) => {
    const { exportId } = await insertExport(at.world, at.stock.tenant, "failed");
    await probe(own(at, "GET", `/exports/${exportId}/download`));
  },
  EXPORT_EXPIRED: async (at: Stage, probe: Probe) => {
    const { exportId } = await insertExport(at.world, at.stock.tenant, "expired");
    await probe(own(at, "GET", `/exports/${exportId}/download`));
  },
  RANGE_NOT_SATISFIABLE: async (at: Stage, probe: Probe) => {
    const { exportId } = await completedExport(at.stock);
    await probe(own(at, "GET", `/exports/${exportId}/download`, { headers: { range: "bytes=5-" } }));
  },
} as const;
