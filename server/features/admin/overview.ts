// What operators see over all tenants: figures, users, devices, and everything that is stuck.
import type { contract, InstallationStats, StuckItem } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Handlers } from "../../core/feature.ts";
import type { FindStuck, Stuck } from "../../core/people/stuck.ts";
import { createCached } from "../../core/structures/cached.ts";
import type { OutboxFigures } from "../../platform/outbox/outbox-rows.ts";
import type { AnyDevice } from "../devices/index.ts";
import type { AnyTenant } from "../tenants/index.ts";
import type { NodeRow } from "./store.ts";

export interface OverviewDeps {
  readonly clock: Clock;
  readonly anyTenant: Pick<AnyTenant, "users" | "countByStatus">;
  readonly anyDevice: AnyDevice;
  readonly commands: {
    perMinute(): Promise<number>;
    commandGauges(): Promise<{ readonly open: Readonly<Record<string, number>>; readonly pastDeadline: number }>;
  };
  readonly outbox: { figures(): Promise<OutboxFigures> };
  readonly nodes: () => Promise<readonly NodeRow[]>;
  /** The reports of all features; complete once they exist. */
  readonly stuck: () => readonly FindStuck[];
}

/** Counting every device is not free, and a page that refreshes asks often. */
const STATS_MS = 10_000;
const MAX_OF_A_KIND = 100;

type Names = "stats" | "listUsers" | "listDevices" | "disconnectDevice" | "listStuck";

export const createOverview = (deps: OverviewDeps): Pick<Handlers<typeof contract.admin>, Names> => {
  const { clock, anyTenant, anyDevice, stuck } = deps;
  const stats = createCached<InstallationStats>({ load: () => readStats(deps), clock, ttlMs: STATS_MS });
  return {
    stats: async () => {
      const found = await stats.get("all");
      if (found === null) throw new Error("the figures are always there");
      return found;
    },
    listUsers: (_call, query) => anyTenant.users(query),
    listDevices: async (_call, { fingerprint }) => ({ items: await anyDevice.withFingerprint(fingerprint) }),
    disconnectDevice: ({ fail, commit }, { deviceId }) =>
      commit(async (tx, afterwards) => {
        const done = await anyDevice.disconnect(tx, afterwards, deviceId);
        if (done === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
        return done;
      }),
    listStuck: async (_call, { kind, tenantId }) => {
      // One more than shown tells whether there are more.
      const found = (await Promise.all(stuck().map((find) => find(MAX_OF_A_KIND + 1)))).flat();
      const wanted = found
        .filter((item) => (kind === undefined || item.kind === kind) && (tenantId === undefined || item.tenantId === tenantId))
        .sort((a, b) => a.since.getTime() - b.since.getTime());
      const seen = new Map<string, number>();
      const place = (item: Stuck): number => {
        const at = (seen.get(item.kind) ?? 0) + 1;
        seen.set(item.kind, at);
        return at;
      };
      const items = wanted.filter((item) => place(item) <= MAX_OF_A_KIND);
      const shown = items.map(({ since, ...item }) => ({ ...item, since: since.toISOString() }) as StuckItem); // as: ids of tenants
      return { items: shown, truncated: [...seen.values()].some((count) => count > MAX_OF_A_KIND) };
    },
  };
};

const readStats = async ({ clock, anyTenant, anyDevice, commands, outbox, nodes }: OverviewDeps): Promise<InstallationStats> => {
  const [tenants, devices, live, perMinute, { open, pastDeadline }, { undispatched, oldestSeconds }] = await Promise.all([
    anyTenant.countByStatus(),
    anyDevice.countByStatus(),
    nodes(),
    commands.perMinute(),
    commands.commandGauges(),
    outbox.figures(),
  ]);
  return {
    at: clock.now().toISOString(),
    tenants,
    devices,
    nodes: live.map(({ nodeId, connections, ready }) => ({ nodeId, connections, ready })),
    commands: { perMinute, open: { ...open }, pastDeadline },
    outbox: { undispatched, oldestSeconds },
  };
};
