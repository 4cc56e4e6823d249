// Keeps what the page has read true: an event patches the records that it carries and marks the lists and counts that it concerns as out of date.
import type { Device, LiveEvent } from "@mooring/client";
import type { QueryFilters } from "@tanstack/react-query";
import { api, queryClient } from "./client.ts";
import { isBeginning, startFeed } from "./live.ts";

const READ_AGAIN_MS = 500;

/** What to read again after events whose type begins like this. A new feature adds its line. */
const CONCERNS: ReadonlyMap<string, readonly QueryFilters[]> = new Map<string, readonly QueryFilters[]>([
  ["device", [api.devices.pathFilter()]],
  ["command", [api.commands.pathFilter()]],
  ["pairing", [api.pairing.pathFilter(), api.devices.pathFilter()]],
  ["enrollment", [api.pairing.pathFilter()]],
  ["fleet", [api.fleets.pathFilter()]],
  ["member", [api.roles.pathFilter(), api.general.me.pathFilter()]],
  ["role", [api.roles.pathFilter(), api.general.me.pathFilter()]],
  ["invite", [api.invites.pathFilter()]],
  ["api_key", [api.apiKeys.pathFilter()]],
  ["billing", [api.billing.pathFilter()]],
  ["tenant", [api.tenants.pathFilter(), api.account.pathFilter()]],
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

const dirty = new Set<string>();
let waiting = false;
const readAgain = (): void => {
  waiting = false;
  const filters = [...dirty].flatMap((concern) => CONCERNS.get(concern) ?? []);
  dirty.clear();
  for (const filter of filters) void queryClient.invalidateQueries(filter, { cancelRefetch: false });
};

const receive = (events: readonly LiveEvent[]): void => {
  if (events.some(isBeginning)) void queryClient.invalidateQueries();
  for (const event of events) {
    patchDevice(event);
    dirty.add(concernOf(event));
  }
  if (waiting || dirty.size === 0) return;
  waiting = true;
  setTimeout(readAgain, READ_AGAIN_MS);
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
