// The features of data: backups, where they go, when they are made, and the volumes of devices.
import type { Clients } from "../core/database.ts";
import type { SystemScope, TenantFacts } from "../core/scope.ts";
import { createBackupDestinations } from "../features/backup-destinations/index.ts";
import { createBackupPolicies } from "../features/backup-policies/index.ts";
import { backupFailureOf, createBackups } from "../features/backups/index.ts";
import { createVolumes } from "../features/volumes/index.ts";
import type { Wiring } from "./deps.ts";
import type { Peers } from "./peers.ts";
import { repositoriesUrl, serveRepositories } from "./repositories.ts";

export const keeping = (wiring: Wiring, peers: Peers) => {
  const { kit, serving, settings, toLimit } = wiring;
  const isKnown = async (db: Clients, scope: SystemScope, deviceId: string): Promise<boolean> =>
    (await peers.devices.known(db, scope, [deviceId])).has(deviceId);
  const limitOf = (tenant: TenantFacts | null, resource: "storageGB" | "backupRetentionDays"): number | null =>
    tenant === null ? 0 : (kit.plan.limitsOf(tenant)[resource] ?? null);
  return {
    backups: () =>
      createBackups({
        ...kit,
        apps: () => peers.apps.backing,
        repositories: () => peers.backupDestinations.repositories,
        cancelOrdered: (...asked) => peers.commands.cancelOrdered(...asked),
        findOrder: (...asked) => peers.commands.openOrder(...asked),
        follow: (...ended) => peers.backupPolicies.follow(...ended),
        asksBeforeUpdate: (...asked) => peers.backupPolicies.asksBeforeUpdate(...asked),
        isKnown,
        isOnline: async (...asked) => (await peers.devices.find(...asked))?.status === "online",
        carriers: () => serving.carriers,
        pages: serving.pages,
        edgeUrl: () => serving.edgeUrl(),
        requireEngine: (...asked) => peers.devices.requireRestic(...asked),
        hideFor: (...asked) => peers.apps.hideFor?.(...asked) ?? Promise.resolve(null),
      }),
    backupDestinations: () => {
      const feature = createBackupDestinations({
        ...kit,
        repositoriesUrl: () => settings?.repositoriesUrl?.() ?? repositoriesUrl(wiring),
        findUses: async (...asked) => [...(await peers.backups.usesOf(...asked)), ...(await peers.backupPolicies.usesOf(...asked))],
        findOrder: (...asked) => peers.commands.openOrder(...asked),
        isKnown,
        requireEngine: (...asked) => peers.devices.requireRestic(...asked),
        failureOf: (outcome) => {
          const { previousData: _, ...failure } = backupFailureOf(outcome);
          return failure;
        },
        storageLimit: async (tenantId) => limitOf(await peers.tenants.lookup.find(tenantId), "storageGB"),
      });
      return { ...feature, edge: serveRepositories(wiring, feature.gate) };
    },
    backupPolicies: () =>
      createBackupPolicies({
        ...kit,
        apps: () => peers.apps.backing,
        backups: () => peers.backups.forPolicies,
        destinations: () => peers.backupDestinations.repositories,
        toLimit,
        knownDevices: (...asked) => peers.devices.known(...asked),
        holdFleets: (...holding) => peers.fleets.holdForLimit(...holding),
        // In the transaction of who asks: the lookup would read what it no longer knows with a second session.
        retentionDays: async (db, scope) => limitOf(await peers.tenants.standing.facts(db, scope), "backupRetentionDays"),
        timezoneOf: (...asked) => peers.tenants.timezoneOf(...asked),
      }),
    volumes: () =>
      createVolumes({
        ...kit,
        apps: () => peers.apps.backing,
        findDevice: (scope, deviceId) => peers.devices.find(scope, deviceId),
        isOpen: async (...asked) => (await peers.commands.openOrder(...asked)) !== null,
      }),
  };
};
