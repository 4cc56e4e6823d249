// Keeps what the page has read true: an event patches the records that it carries and marks the lists and counts that it concerns as out of date.
import type { Device, LiveEvent } from "@mooring/client";
import type { QueryFilters } from "@tanstack/react-query";
import { api, queryClient } from "./client.ts";
import { isBeginning, startFeed } from "./live.ts";
import { readAgain } from "./outdated.ts";
import { createThrottle } from "./throttle.ts";

const READ_AGAIN_MS = 500;

type Filtered = { readonly pathFilter: () => QueryFilters };
type Group = { [K in keyof typeof api]: (typeof api)[K] extends Filtered ? K : never }[keyof typeof api];

/** What to read again after events whose type begins like this. A new feature adds its line. */
const CONCERNS: ReadonlyMap<string, readonly (Group | Filtered)[]> = new Map<string, readonly (Group | Filtered)[]>([
  // What a command waits for depends on its device.
  ["device", ["devices", api.commands.timeline]],
  ["command", ["commands"]],
  ["bulk_operation", ["bulkOperations"]],
  ["rollout", ["rollouts", "fleets"]],
  ["update_policy", ["rollouts", "audit"]],
  // Not the lookup of a code: a rollout by token would use up the few lookups a minute of the person who compares a machine.
  ["pairing", [api.pairing.listTokens, api.pairing.requests, "devices"]],
  ["enrollment", [api.pairing.deviceProgress]],
  // What one of them does shows on the other, and what an app reports on its device.
  ["app", ["apps", "deployments"]],
  ["deployment", ["apps", "deployments"]],
  // A backup fills its destination, and a restore makes one.
  ["backup", ["backups", "backupDestinations"]],
  ["restore", ["backups"]],
  ["backup_policy", ["backupPolicies", "backups", "audit"]],
  ["backup_destination", ["backupDestinations", "audit"]],
  ["domain", ["domains", "audit"]],
  ["tunnel", ["tunnels", "audit"]],
  ["mesh_route", ["meshRoutes", "audit"]],
  ["volume", ["volumes"]],
  ["fleet", ["fleets", "audit"]],
  ["view", ["views"]],
  ["member", ["roles", api.general.me, "audit"]],
  ["impersonation", ["impersonations", "audit"]],
  ["role", ["roles", api.general.me, "audit"]],
  ["invite", ["invites", "audit"]],
  ["api_key", ["apiKeys", "audit"]],
  ["export", ["dataExports"]],
  ["cost", ["costs", "audit"]],
  ["import", ["imports", "audit"]],
  ["billing", ["billing", "audit"]],
  ["tenant", ["tenants", "account", "audit"]],
  ["account", ["account"]],
  ["alert", ["alerts", "audit"]],
  ["webhook", ["webhooks", "audit"]],
  ["security_alert", ["security", "audit"]],
  ["security", ["security", "audit"]],
  ["load_test", ["tenants"]],
]);
const concernOf = ({ type }: LiveEvent): string => type.slice(0, type.indexOf("."));

const patchDevice = ({ type, subjectId, data }: LiveEvent): void => {
  if (type !== "device.online" && type !== "device.offline") return;
  const { status, lastSeen, reason } = data as Partial<Pick<Device, "status" | "lastSeen">> & { reason?: string };
  const patch = (device: Device): Device =>
    device.deviceId === subjectId
      ? {
          ...device,
          ...(status === undefined ? {} : { status }),
          ...(lastSeen === undefined ? {} : { lastSeen }),
          ...(reason === undefined ? {} : { offlineReason: reason }),
        }
      : device;
  queryClient.setQueriesData<Device>(api.devices.get.pathFilter(), (device) => (device === undefined ? device : patch(device)));
  queryClient.setQueriesData<{ items: Device[] }>(api.devices.list.pathFilter(), (page) =>
    page === undefined ? page : { ...page, items: page.items.map(patch) },
  );
};

/** The device that an event or a query is about, or undefined when it is about none or about several. */
const deviceOf = (named: unknown): unknown => (named as { readonly deviceId?: unknown } | undefined)?.deviceId;
const inputOf = ({ queryKey }: { readonly queryKey: readonly unknown[] }): unknown => (queryKey[1] as { readonly input?: unknown } | undefined)?.input;

/** The news of a removal may be ahead of its answer, and the page that is about to be left would ask for what is gone. */
const isRemoving = (): boolean =>
  queryClient.isMutating({ predicate: ({ options: { mutationKey } }) => (mutationKey?.[0] as readonly unknown[] | undefined)?.at(-1) === "remove" }) > 0;

/** Prefixes of event types, each with the devices that its events were about. */
const dirty = new Map<string, Set<unknown>>();
const readAgainSoon: () => void = createThrottle(
  () => {
    if (isRemoving()) return readAgainSoon();
    const filters = [...dirty].flatMap(([concern, devices]) =>
      (CONCERNS.get(concern) ?? []).map((of): QueryFilters => {
        // A query about one device is as true as before when others have changed.
        const concerned = (query: { readonly queryKey: readonly unknown[] }): boolean =>
          devices.has(undefined) || deviceOf(inputOf(query)) === undefined || devices.has(deviceOf(inputOf(query)));
        return { ...(typeof of === "string" ? api[of] : of).pathFilter(), predicate: concerned };
      }),
    );
    dirty.clear();
    for (const filter of filters) readAgain(queryClient, filter);
  },
  () => READ_AGAIN_MS,
);
const mark = (event: LiveEvent): void => {
  const devices = dirty.get(concernOf(event)) ?? new Set();
  dirty.set(concernOf(event), devices.add(deviceOf(event.data)));
};

const receive = (events: readonly LiveEvent[]): void => {
  if (events.some(isBeginning)) void queryClient.invalidateQueries();
  for (const event of events) {
    patchDevice(event);
    mark(event);
  }
  if (dirty.size > 0) readAgainSoon();
};

/** Starts once per page. A page that was hidden has missed events. */
export const keepFresh = (): ReturnType<typeof startFeed> => {
  const listen = startFeed();
  listen(receive);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) void queryClient.invalidateQueries();
  });
  return listen;
};
