// The routes of backups, their policies and destinations, and of volumes.
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { readDestinationSearch } from "../../screens/backup-destinations/search.ts";
import { readBackupSearch, readOneBackupSearch } from "../../screens/backups/search.ts";
import { readVolumeSearch } from "../../screens/volumes/search.ts";
import { root } from "./root.tsx";

const backups = createRoute({
  getParentRoute: () => root,
  path: "/backups",
  validateSearch: readBackupSearch,
  component: lazyRouteComponent(() => import("../../screens/backups/backups.tsx"), "BackupsScreen"),
});
const backup = createRoute({
  getParentRoute: () => root,
  path: "/backups/$backupId",
  validateSearch: readOneBackupSearch,
  component: lazyRouteComponent(() => import("../../screens/backups/backup.tsx"), "BackupScreen"),
});
const backupPolicies = createRoute({
  getParentRoute: () => root,
  path: "/backups/policies",
  component: lazyRouteComponent(() => import("../../screens/backup-policies/policies.tsx"), "PoliciesScreen"),
});
const backupPolicy = createRoute({
  getParentRoute: () => root,
  path: "/backups/policies/$policyId",
  component: lazyRouteComponent(() => import("../../screens/backup-policies/policy.tsx"), "PolicyScreen"),
});
const backupDestinations = createRoute({
  getParentRoute: () => root,
  path: "/backups/destinations",
  validateSearch: readDestinationSearch,
  component: lazyRouteComponent(() => import("../../screens/backup-destinations/destinations.tsx"), "DestinationsScreen"),
});
const volumes = createRoute({
  getParentRoute: () => root,
  path: "/backups/volumes",
  validateSearch: readVolumeSearch,
  component: lazyRouteComponent(() => import("../../screens/volumes/volumes.tsx"), "VolumesScreen"),
});

export const backupRoutes = [backups, backup, backupPolicies, backupPolicy, backupDestinations, volumes] as const;
