// What holds between the operations: which carriers are open and where, what devices say of their tunnels, and what people hear when that changes.
import { contract, type DesiredTunnel, type ReportedTunnel } from "../../../protocol/index.ts";
import { happened } from "../../core/events.ts";
import type { CarrierFacts, Carriers } from "../../core/ports/carriers.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Job } from "../../platform/jobs.ts";
import type { FeatureKit } from "../kit.ts";
import { aboutOf, FRESH_MS } from "./reads.ts";
import {
  carriersElsewhere,
  carriersOf,
  changedHealth,
  deleteCarrier,
  insertCarrier,
  lockTunnel,
  noteSeen,
  patchTunnel,
  refreshCarriers,
  type TunnelPatch,
  type TunnelRow,
  tunnelsOfDevice,
} from "./store.ts";

export interface StandingDeps extends Pick<FeatureKit, "db" | "clock" | "emit"> {
  readonly nodeId: string;
  readonly nodeUrl: () => string;
  readonly carriers: () => Carriers;
  readonly changed: (tenantId: string) => void;
  readonly onError: (error: unknown) => void;
}

const { events } = contract.tunnels;
const REFRESH_MS = 10_000;
const HEALTH_MS = 5_000;
/** Hysteresis: a carrier that comes back within this time was never away. */
const GONE_MS = 15_000;
/** A row may be written a moment before its carrier is listed. */
const SETTLED_MS = 5_000;
const STALE_MS = 120_000;
const BATCH = 100;

const MESSAGES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    refused: "Nothing listens at the service.",
    timeout: "The service does not answer.",
    not_allowed: "The device does not allow this service.",
    unreachable: "The device cannot reach the service.",
  }),
);
const scopeOf = (tenantId: string): SystemScope => ({ tenantId }) as SystemScope; // as: read from a row

export const createTunnelStanding = ({ db, clock, emit, nodeId, nodeUrl, carriers, changed, onError }: StandingDeps) => {
  const ago = (ms: number): Date => new Date(clock.now().getTime() - ms);

  /** A connector says nothing of its service, so its tunnel is active once it is there. */
  const activate = (scope: SystemScope, tunnelId: string): Promise<void> =>
    db.tx(async (tx) => {
      const row = await lockTunnel(tx, scope, tunnelId);
      if (row === null || (row.status !== "pending" && row.status !== "error")) return;
      await patchTunnel(tx, scope, tunnelId, { status: "active" });
      await emit(tx, [happened(scope, events.active, tunnelId, aboutOf(row))]);
    });

  const opened = async (facts: CarrierFacts): Promise<void> => {
    const { carrierId, key, kind, clientVersion, openedAt, tenantId } = facts;
    const scope = scopeOf(tenantId);
    await insertCarrier(db, scope, { carrierId, key, nodeId, relayUrl: nodeUrl(), kind, clientVersion, openedAt, seenAt: clock.now() });
    if (key.startsWith("tun_")) await activate(scope, key);
    changed(tenantId);
  };
  const closed = async ({ carrierId, key, tenantId }: CarrierFacts): Promise<void> => {
    await deleteCarrier(db, scopeOf(tenantId), carrierId);
    await noteSeen(db, tenantId, key, clock.now());
    changed(tenantId);
  };

  const patchBy = (row: TunnelRow, said: ReportedTunnel): TunnelPatch => {
    if (said.state === "up") return { failure: null, serviceState: "reachable", ...(row.status === "stopped" ? {} : { status: "active" }) };
    const { reason = "unreachable" } = said;
    const serviceState = reason === "refused" || reason === "timeout" ? reason : "unknown";
    const failure = { reason, message: MESSAGES.get(reason) ?? "The device cannot reach the service." };
    return { failure, serviceState, ...(row.status === "pending" ? { status: "error" } : {}) };
  };
  const apply = (scope: SystemScope, deviceId: string, said: ReportedTunnel): Promise<boolean> =>
    db.tx(async (tx) => {
      const row = await lockTunnel(tx, scope, said.tunnelId);
      if (row === null || row.deviceId !== deviceId) return false;
      const patch = patchBy(row, said);
      const isNews =
        (patch.status ?? row.status) !== row.status || patch.serviceState !== row.serviceState || (patch.failure === null) !== (row.failure === null);
      if (!isNews) return false;
      await patchTunnel(tx, scope, row.tunnelId, patch);
      if (patch.status === "active" && row.status !== "active") await emit(tx, [happened(scope, events.active, row.tunnelId, aboutOf(row))]);
      return true;
    });

  const refresh: Job = {
    name: "tunnels.carriers",
    everyMs: REFRESH_MS,
    run: () =>
      refreshCarriers(db, {
        nodeId,
        carrierIds: carriers()
          .all()
          .map(({ carrierId }) => carrierId),
        now: clock.now(),
        stale: ago(STALE_MS),
        settled: ago(SETTLED_MS),
      }),
  };
  const toEvent = (row: TunnelRow, health: string) => {
    const about = aboutOf(row);
    const scope = scopeOf(row.tenantId);
    if (health === "down") return happened(scope, events.down, row.tunnelId, about);
    if (health === "degraded")
      return happened(scope, events.degraded, row.tunnelId, { ...about, reason: (row.failure as { reason: string } | null)?.reason ?? "unreachable" }); // as: written here alone
    return row.health === "inactive" ? null : happened(scope, events.recovered, row.tunnelId, about);
  };
  const health: Job = {
    name: "tunnels.health",
    everyMs: HEALTH_MS,
    run: async () => {
      const found = await changedHealth(db, { fresh: ago(FRESH_MS), gone: ago(GONE_MS), limit: BATCH });
      for (const { tenantId, tunnelId, health: now } of found)
        await db.tx(async (tx) => {
          const scope = scopeOf(tenantId);
          const row = await lockTunnel(tx, scope, tunnelId);
          if (row === null || row.health === now) return;
          await patchTunnel(tx, scope, tunnelId, { health: now });
          const event = toEvent(row, now);
          if (event !== null) await emit(tx, [event]);
        });
      return found.length === BATCH;
    },
  };

  return {
    listener: { opened: (facts: CarrierFacts) => void opened(facts).catch(onError), closed: (facts: CarrierFacts) => void closed(facts).catch(onError) },
    jobs: [refresh, health],
    desired: async (scope: SystemScope, deviceId: string): Promise<DesiredTunnel[]> =>
      (await tunnelsOfDevice(db, scope, deviceId)).map(({ tunnelId, service }) => ({ tunnelId: tunnelId as DesiredTunnel["tunnelId"], service })), // as: the column holds ids of tunnels
    /** What an agent says of its tunnels. */
    report: async (scope: SystemScope, deviceId: string, reported: readonly ReportedTunnel[]): Promise<void> => {
      let isNews = false;
      for (const said of reported) isNews = (await apply(scope, deviceId, said)) || isNews;
      if (isNews) changed(scope.tenantId);
    },
    connected: async (scope: SystemScope, keys: readonly string[]): Promise<ReadonlySet<string>> =>
      new Set((await carriersOf(db, scope, keys, ago(FRESH_MS))).map(({ key }) => key)),
    nodesOf: async (key: string): Promise<readonly { readonly url: string }[]> =>
      (await carriersElsewhere(db, { key, nodeId, since: ago(FRESH_MS) })).map(({ relayUrl: url }) => ({ url })),
  };
};
export type TunnelStanding = ReturnType<typeof createTunnelStanding>;
