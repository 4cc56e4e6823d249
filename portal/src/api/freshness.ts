// Keeps what the page has read true: an event patches the records that it carries and marks the lists and counts that it concerns as out of date.
import type { Device, LiveEvent } from "@mooring/client";
import type { QueryFilters } from "@tanstack/react-query";
import { api, queryClient } from "./client.ts";
import { isBeginning, startFeed } from "./live.ts";
import { createThrottle } from "./throttle.ts";

const READ_AGAIN_MS = 500;

/** What to read again after events whose type begins like this. A new feature adds its line. */
const CONCERNS: ReadonlyMap<string, readonly QueryFilters[]> = new Map<string, readonly QueryFilters[]>([
  // What a command waits for depends on its device.
  ["device", [api.devices.pathFilter(), api.commands.timeline.pathFilter()]],
  ["command", [api.commands.pathFilter()]],
  // Not the lookup of a code: a rollout by token would use up the few lookups a minute of the person who compares a machine.
  ["pairing", [api.pairing.listTokens.pathFilter(), api.devices.pathFilter()]],
  ["enrollment", [api.pairing.deviceProgress.pathFilter()]],
  // What one of them does shows on the other, and what an app reports on its device.
  ["app", [api.apps.pathFilter(), api.deployments.pathFilter()]],
  ["deployment", [api.apps.pathFilter(), api.deployments.pathFilter()]],
  ["fleet", [api.fleets.pathFilter(), api.audit.pathFilter()]],
  ["member", [api.roles.pathFilter(), api.general.me.pathFilter(), api.audit.pathFilter()]],
  ["role", [api.roles.pathFilter(), api.general.me.pathFilter(), api.audit.pathFilter()]],
  ["invite", [api.invites.pathFilter(), api.audit.pathFilter()]],
  ["api_key", [api.apiKeys.pathFilter(), api.audit.pathFilter()]],
  ["billing", [api.billing.pathFilter(), api.audit.pathFilter()]],
  ["tenant", [api.tenants.pathFilter(), api.account.pathFilter(), api.audit.pathFilter()]],
  ["account", [api.account.pathFilter()]],
  ["alert", [api.alerts.pathFilter(), api.audit.pathFilter()]],
  ["webhook", [api.webhooks.pathFilter(), api.audit.pathFilter()]],
  ["security_alert", [api.security.pathFilter(), api.audit.pathFilter()]],
  ["security", [api.security.pathFilter(), api.audit.pathFilter()]],
  ["load_test", [api.tenants.pathFilter()]],
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

/** Prefixes of event types, each with the devices that its events were about. */
const dirty = new Map<string, Set<unknown>>();
const readAgainSoon = createThrottle(
  () => {
    const filters = [...dirty].flatMap(([concern, devices]) =>
      (CONCERNS.get(concern) ?? []).map((filter): QueryFilters => {
        // A query about one device is as true as before when others have changed.
        const concerned = (query: { readonly queryKey: readonly unknown[] }): boolean =>
          devices.has(undefined) || deviceOf(inputOf(query)) === undefined || devices.has(deviceOf(inputOf(query)));
        return { ...filter, predicate: concerned };
      }),
    );
    dirty.clear();
    for (const filter of filters) void queryClient.invalidateQueries(filter, { cancelRefetch: false });
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
