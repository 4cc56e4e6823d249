// Puts devices into groups by their tags: by the first tag, or by what follows a key, as in `site:lisbon`.
import type { FleetDevice } from "./fleet.ts";

export const TOGETHER = "-";
export const FIRST_TAG = "tag";

export interface DeviceGroup {
  /** The tag that its devices share, or null for those without one. */
  readonly tag: string | null;
  readonly devices: readonly FleetDevice[];
}

const keyOf = (tag: string): string | null => /^([^:]+):./.exec(tag)?.[1] ?? null;

/** The keys of tags, beginning with the one that most devices have. */
const tagKeys = (devices: readonly FleetDevice[]): readonly string[] => {
  const counts = new Map<string, number>();
  for (const { tags = [] } of devices)
    for (const key of new Set(tags.map(keyOf))) if (key !== null && key !== FIRST_TAG) counts.set(key, (counts.get(key) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a).map(([key]) => key);
};

/** How to group when the URL says nothing. */
export const usualGrouping = (devices: readonly FleetDevice[]): string =>
  tagKeys(devices)[0] ?? (devices.some(({ tags = [] }) => tags.length > 0) ? FIRST_TAG : TOGETHER);

const tagOf = ({ tags = [] }: FleetDevice, by: string): string | null => {
  if (by === TOGETHER) return null;
  const fitting = by === FIRST_TAG ? tags : tags.filter((tag) => keyOf(tag) === by);
  return fitting.toSorted()[0] ?? null;
};

const hasTrouble = ({ devices }: DeviceGroup): boolean => devices.some(({ status }) => status === "offline");
const byName = ({ tag: a }: DeviceGroup, { tag: b }: DeviceGroup): number => (a === null ? 1 : b === null ? -1 : a.localeCompare(b));

/** Groups with trouble first, then in the order of their tags; devices without a tag come last. */
export const groupDevices = (devices: readonly FleetDevice[], by: string): readonly DeviceGroup[] => {
  const groups = new Map<string | null, FleetDevice[]>();
  for (const device of devices) {
    const tag = tagOf(device, by);
    const members = groups.get(tag);
    if (members === undefined) groups.set(tag, [device]);
    else members.push(device);
  }
  return [...groups].map(([tag, members]) => ({ tag, devices: members })).toSorted((a, b) => Number(hasTrouble(b)) - Number(hasTrouble(a)) || byName(a, b));
};
