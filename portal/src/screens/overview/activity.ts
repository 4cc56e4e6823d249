// The newest events in words. When more happens than people can read, it keeps every failure and samples the rest.
import type { LiveEvent } from "@mooring/client";
import { isBeginning } from "../../api/live.ts";
import { gatewayNow } from "../../ui/clock.ts";
import type { Ended } from "./ended.ts";
import { isFailure } from "./rates.ts";

export interface Entry {
  readonly key: string;
  readonly at: string;
  /** The status of a command or a device, or what happened. */
  readonly status: string;
  /** Such as the command's type, and why it failed. */
  readonly detail: string;
  readonly device: { readonly deviceId: string; readonly name: string } | null;
}

export const ROWS = 20;
const CALM_PER_SECOND = 12;
const TROUBLE_PER_SECOND = 20;

const words = (name: string): string => name.replaceAll(/[._]/g, " ");
const join = (...parts: readonly (string | null | undefined)[]): string =>
  parts
    .filter(Boolean)
    .map((part) => words(part ?? ""))
    .join(", ");

interface Known {
  readonly deviceId?: string;
  readonly deviceName?: string | null;
  readonly hostname?: string;
  readonly status?: string;
  readonly type?: string;
  readonly failureCode?: string | null;
  readonly reason?: string;
}

const deviceOf = ({ deviceId, deviceName, hostname }: Known): Entry["device"] =>
  deviceId === undefined ? null : { deviceId, name: deviceName ?? hostname ?? deviceId };

/** Null for steps on the way, which are never replayed and say nothing final, and for what concerns the stream only. */
const entryOf = (event: LiveEvent): Entry | null => {
  const { id, type, subjectId, at, data } = event;
  if (id === null || isBeginning(event)) return null;
  const known = data as Known;
  const common = { at, device: deviceOf(known) };
  if (type.startsWith("command.") && known.status !== undefined)
    return { ...common, key: `${subjectId} ${known.status}`, status: known.status, detail: join(known.type, known.failureCode) };
  if (type === "device.online" || type === "device.offline") return { ...common, key: id, status: type.slice("device.".length), detail: join(known.reason) };
  return { ...common, key: id, status: words(type), detail: "" };
};

const entryOfEnded = ({ commandId, deviceId, deviceName, type, status, failureCode, finishedAt }: Ended["items"][number]): Entry => ({
  key: `${commandId} ${status ?? ""}`,
  at: finishedAt ?? "",
  status: status ?? "",
  detail: join(type, failureCode),
  device: deviceOf({ ...(deviceId === undefined ? {} : { deviceId }), deviceName: deviceName ?? null }),
});

const isTrouble = ({ status }: Entry): boolean => isFailure(status) || status === "offline";

export const createActivity = () => {
  let entries: readonly Entry[] = [];
  let second = 0;
  let [calm, trouble] = [0, 0];
  let sampledUntil = 0;

  const fits = (entry: Entry): boolean => {
    if (isTrouble(entry)) trouble += 1;
    else calm += 1;
    return isTrouble(entry) ? trouble <= TROUBLE_PER_SECOND : calm <= CALM_PER_SECOND;
  };
  const receive = (events: readonly LiveEvent[]): void => {
    const now = Math.floor(gatewayNow() / 1_000);
    if (now !== second) [second, calm, trouble] = [now, 0, 0];
    const told = events.map(entryOf).filter((entry) => entry !== null);
    const kept = told.filter(fits);
    if (kept.length < told.length) sampledUntil = now + 5;
    if (kept.length > 0) entries = [...kept.reverse(), ...entries].slice(0, ROWS);
  };
  /** Newest first; below the events what was read when the page began. */
  const list = (ended: Ended | undefined): readonly Entry[] => {
    const known = new Map(entries.map((entry) => [entry.key, entry]));
    for (const row of ended?.items.slice(0, ROWS) ?? []) {
      const entry = entryOfEnded(row);
      if (!known.has(entry.key)) known.set(entry.key, entry);
    }
    return [...known.values()].toSorted((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)).slice(0, ROWS);
  };
  return { receive, list, isSampled: () => sampledUntil * 1_000 > gatewayNow() };
};
