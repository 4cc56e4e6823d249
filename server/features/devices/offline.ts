// Which devices went offline together: a router that fails takes a site with it, and that is one thing to look at.
import { type Attention, type AttentionSource, MAX_ALONE, shownNames } from "../../core/people/attention.ts";
import { commonTag, sharedTags, type TagTotals } from "../../core/people/common-tag.ts";
import type { FeatureKit } from "../kit.ts";
import { countTagged } from "./store/groups.ts";
import { listOffline, type OfflineDevice } from "./store/offline.ts";

/** The newest of them are grouped; the rest are counted. */
const LOOKS_AT = 1_000;
/** Heartbeats come every half minute, so devices that went at once were last seen within a minute. */
const TOGETHER_MS = 60_000;
/** Fewer are coincidence. */
const TOGETHER = 3;

const seenMs = ({ last_seen_at }: OfflineDevice): number => last_seen_at?.getTime() ?? 0;

/** Runs of devices between whose last signs lies no more than a minute. */
const runsOf = (devices: readonly OfflineDevice[]): OfflineDevice[][] => {
  const runs: OfflineDevice[][] = [];
  for (const device of devices) {
    const run = runs.at(-1);
    const before = run?.at(-1);
    if (run === undefined || before === undefined || seenMs(before) - seenMs(device) > TOGETHER_MS) runs.push([device]);
    else run.push(device);
  }
  return runs;
};

/** The tags by which some of them may turn out to have gone together. */
const candidatesAmong = (devices: readonly OfflineDevice[]): string[] =>
  sharedTags(
    runsOf(devices)
      .filter(({ length }) => length >= TOGETHER)
      .flat(),
    TOGETHER,
  );

export interface OfflineGroup {
  /** Null: they went at different times, or share no tag. */
  readonly tag: string | null;
  readonly devices: readonly OfflineDevice[];
}

/** Groups that went together, and all others each alone, in the order in which they went. */
export const groupOffline = (
  devices: readonly OfflineDevice[],
  totals: TagTotals = new Map(),
): { readonly groups: readonly OfflineGroup[]; readonly alone: readonly OfflineDevice[] } => {
  const groups: OfflineGroup[] = [];
  const alone: OfflineDevice[] = [];
  for (const run of runsOf(devices)) {
    let left = run;
    while (left.length >= TOGETHER) {
      const tag = commonTag(left, TOGETHER, totals);
      const members = tag === null ? left : left.filter(({ tags }) => tags.includes(tag));
      groups.push({ tag, devices: members });
      left = tag === null ? [] : left.filter(({ tags }) => !tags.includes(tag));
    }
    alone.push(...left);
  }
  return { groups, alone };
};

const common = { kind: "devices_offline", tone: "bad", params: {} } as const;
const oldest = (devices: readonly OfflineDevice[]): Date | null => devices.at(-1)?.last_seen_at ?? null;
const tagged = (tag: string): string => new URLSearchParams({ status: "offline", tag }).toString();

const together = ({ tag, devices }: OfflineGroup): Attention => ({
  ...common,
  count: devices.length,
  since: oldest(devices),
  subject: tag === null ? null : { kind: "tag", id: tag, name: tag },
  names: shownNames(devices),
  action: { place: "devices", id: null, search: tag === null ? "status=offline&sort=-lastSeen" : tagged(tag) },
});

const byItself = ({ device_id, name, reason, last_seen_at }: OfflineDevice): Attention => ({
  ...common,
  count: 1,
  since: last_seen_at,
  subject: { kind: "device", id: device_id, name },
  names: [name],
  params: reason === null ? {} : { reason },
  action: { place: "devices", id: device_id, search: "" },
});

export const createOfflineAttention = ({ db, clock }: Pick<FeatureKit, "db" | "clock">): AttentionSource => ({
  needs: "device:read",
  find: async (scope, limit) => {
    const devices = await listOffline(db, scope, clock.now(), LOOKS_AT);
    const { groups, alone } = groupOffline(devices, await countTagged(db, scope, candidatesAmong(devices)));
    const lines = [...groups.slice(0, limit - MAX_ALONE).map(together), ...alone.slice(0, MAX_ALONE).map(byItself)];
    const named = lines.reduce((sum, { count }) => sum + count, 0);
    const rest = alone.slice(MAX_ALONE);
    const more = (devices[0]?.total ?? 0) - named;
    if (more === 0) return lines;
    const search = "status=offline&sort=lastSeen";
    return [...lines, { ...common, count: more, since: oldest(rest), subject: null, names: shownNames(rest), action: { place: "devices", id: null, search } }];
  },
});
