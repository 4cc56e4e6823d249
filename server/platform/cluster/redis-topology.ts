// The topology of a Redis Cluster: which master holds which slot. Any member knows it, and none tells when it changes, so it is asked for now and then, and
// whenever a connection fails or a command is sent elsewhere.
import { groupBy } from "../../core/structures/group-by.ts";
import { askRedis } from "./redis-link.ts";
import { clusterSlotOf } from "./redis-slots.ts";
import type { RedisPlace } from "./redis-urls.ts";

/** A host and port as the cluster names them. */
export type MasterAddress = string;

export interface RedisTopology {
  /** The masters that hold slots; none until a member has answered. */
  readonly masters: ReadonlySet<MasterAddress>;
  /** Null until a member has answered, or while nobody holds the slot. */
  masterOf(key: string): MasterAddress | null;
  urlOf(address: MasterAddress): string;
  /** Asks soon; a second call before that changes nothing. */
  refresh(): void;
  /** Calls the hook after each change. */
  onChanged(hook: () => void): void;
  close(): void;
}

export interface TopologyDeps {
  readonly place: Pick<RedisPlace, "members" | "at">;
  /** No member answers. Called once until one does. */
  readonly onError: (error: unknown) => void;
  readonly settings?: Partial<TopologySettings> | undefined;
}

interface TopologySettings {
  readonly refreshEveryMs: number;
  readonly soonMs: number;
}

const SETTINGS: TopologySettings = { refreshEveryMs: 10_000, soonMs: 500 };
/** Enough to tell what most know, however many there are. */
const MAX_ASKED = 9;

interface Range {
  readonly from: number;
  readonly to: number;
  readonly address: MasterAddress;
}

/** A member that does not know its own name means the one under which it was asked. */
const hostOf = (named: unknown, asked: string): string => {
  const host = typeof named === "string" ? named : "";
  return host === "" || host === "?" ? asked : host;
};

const toRange = (entry: unknown, asked: string): Range[] => {
  const [from, to, master]: readonly unknown[] = Array.isArray(entry) ? entry : [];
  if (typeof from !== "number" || typeof to !== "number" || !Array.isArray(master)) return [];
  return [{ from, to, address: `${hostOf(master[0], asked)}:${String(master[1])}` }];
};

const askMember = async (url: string): Promise<readonly Range[]> => {
  const answer = await askRedis(url, ["CLUSTER", "SLOTS"]);
  const asked = new URL(url).hostname.replace(/^\[|\]$/g, "");
  const ranges = Array.isArray(answer) ? answer.flatMap((entry) => toRange(entry, asked)) : [];
  if (ranges.length === 0) throw new Error("it knows no slots");
  return ranges;
};

export const openTopology = ({ place, onError, settings }: TopologyDeps): RedisTopology => {
  const { refreshEveryMs, soonMs } = { ...SETTINGS, ...settings };
  const hooks: (() => void)[] = [];
  let ranges: readonly Range[] = [];
  let masters: ReadonlySet<MasterAddress> = new Set();
  const state = { asking: false, again: false, failed: false, closed: false };

  const urlOf = (address: MasterAddress): string => {
    const at = address.lastIndexOf(":");
    return place.at(address.slice(0, at), address.slice(at + 1));
  };

  // One that is cut off from the others still answers, with what it knew.
  const find = async (): Promise<readonly Range[]> => {
    const urls = [...new Set([...[...masters].map(urlOf), ...place.members])].slice(0, MAX_ASKED);
    const answers = await Promise.allSettled(urls.map(askMember));
    const views = groupBy(
      answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : [])),
      (ranges) => JSON.stringify(ranges),
    );
    const [most] = [...views.values()].sort((a, b) => b.length - a.length);
    if (most?.[0] !== undefined) return most[0];
    const reasons = answers.map((answer, n) => `${new URL(urls[n] ?? "").host}: ${answer.status === "rejected" ? String(answer.reason) : ""}`);
    throw new Error(`no member of the Redis Cluster answers: ${reasons.join("; ")}`);
  };
  const take = (found: readonly Range[]): void => {
    state.failed = false;
    if (JSON.stringify(found) === JSON.stringify(ranges)) return;
    ranges = found;
    masters = new Set(found.map(({ address }) => address));
    for (const hook of hooks) hook();
  };
  const ask = async (): Promise<void> => {
    state.asking = true;
    state.again = false;
    try {
      const found = await find();
      if (!state.closed) take(found);
    } catch (error) {
      if (!state.failed && !state.closed) onError(error);
      state.failed = true;
    } finally {
      state.asking = false;
      plan(state.again ? soonMs : refreshEveryMs);
    }
  };
  let timer: NodeJS.Timeout | undefined;
  const plan = (ms: number): void => {
    clearTimeout(timer);
    if (!state.closed) timer = setTimeout(() => void ask(), ms);
  };

  void ask();
  return {
    get masters() {
      return masters;
    },
    masterOf: (key) => {
      const slot = clusterSlotOf(key);
      return ranges.find(({ from, to }) => from <= slot && slot <= to)?.address ?? null;
    },
    urlOf,
    refresh: () => {
      if (state.again) return;
      state.again = true;
      if (!state.asking) plan(soonMs);
    },
    onChanged: (hook) => void hooks.push(hook),
    close: () => {
      state.closed = true;
      clearTimeout(timer);
    },
  };
};
