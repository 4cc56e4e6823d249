// A tenant's start page: counts of its resources as they are now, and its newest events.
import type { contract, Dashboard, ResourceCounts } from "../../../protocol/index.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { DeploymentGroups } from "../deployments/index.ts";

/** Numbers of devices by their status. */
export type DeviceStates = Omit<Dashboard["devices"], "total">;

export interface DashboardDeps {
  readonly db: Db;
  readonly deployments: Pick<DeploymentGroups, "countByStatus">;
  /** Numbers of apps by their status. */
  readonly appStates: (scope: SystemScope) => Promise<ReadonlyMap<string, number>>;
  readonly countBackups: (scope: SystemScope) => Promise<number>;
  readonly deviceStates: (scope: SystemScope) => Promise<DeviceStates>;
  /** Newest first. */
  readonly recentEvents: (scope: SystemScope, limit: number) => Promise<readonly DispatchedEvent[]>;
}

const SHOWN_EVENTS = 20;
const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

export const createDashboard = ({
  db,
  deployments,
  appStates,
  countBackups,
  deviceStates,
  recentEvents,
}: DashboardDeps): Pick<Handlers<typeof contract.tenants>, "dashboard" | "summary"> => {
  const countAll = async (scope: SystemScope) => {
    const [states, byStatus, byAppStatus, backups] = await Promise.all([
      deviceStates(scope),
      deployments.countByStatus(db, scope),
      appStates(scope),
      countBackups(scope),
    ]);
    const total = sum([...byStatus.values()]);
    const apps = { total: sum([...byAppStatus.values()]), running: byAppStatus.get("running") ?? 0, stopped: byAppStatus.get("stopped") ?? 0 };
    const counts: ResourceCounts = { devices: sum(Object.values(states)), apps: apps.total, deployments: total, backups };
    return {
      counts,
      states,
      apps,
      deployments: { total, active: (byStatus.get("active") ?? 0) + (byStatus.get("updating") ?? 0), failed: byStatus.get("failed") ?? 0 },
    };
  };
  return {
    dashboard: async ({ scope, fail }, { tenantId }) => {
      if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
      const [{ counts, states, ...rest }, events] = await Promise.all([countAll(scope), recentEvents(scope, SHOWN_EVENTS)]);
      const recentActivity = events.map(({ eventId, type, subjectId, createdAt, data }) => ({ eventId, type, subjectId, at: createdAt.toISOString(), data }));
      return { ...rest, devices: { total: counts.devices, ...states }, recentActivity, counts };
    },
    summary: async ({ scope, fail }, { tenantId }) => {
      if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
      return (await countAll(scope)).counts;
    },
  };
};
