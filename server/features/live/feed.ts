// Feeds the viewers of this node, per tenant: durable events in order and without gaps, with hints in between.
import type { LiveEvent } from "../../../protocol/index.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import { coalesced } from "../../core/structures/coalesced.ts";
import type { Db } from "../../platform/database/db.ts";
import { newestPosition, PAGE, readAfter } from "./store.ts";

export interface Published {
  readonly event: LiveEvent;
  /** Null for hints. */
  readonly sequence: number | null;
}

export const toPublished = ({ eventId, sequence, type, subjectId, createdAt, data }: DispatchedEvent): Published => ({
  sequence,
  event: { id: eventId, version: sequence, type, subjectId, at: createdAt.toISOString(), data: { ...data } },
});

type Show = (published: Published) => void;

/** The viewers of one tenant. */
interface Group {
  readonly viewers: Set<Show>;
  /** Resolves once `shown` is known; rejects when the database does not answer, and then every viewer leaves. */
  readonly ready: Promise<void>;
  /** The sequence number of the last event shown; null until we have read where the sequence stood when the first viewer came. */
  shown: number | null;
  reading: boolean;
  /** There may be events that the last read did not see. */
  isBehind: boolean;
  /** Catches up, once for all calls within a pause. */
  readonly recheck: () => void;
}

export interface FeedDeps {
  readonly db: Db;
  readonly onError: (error: unknown) => void;
  /** Pause between two reads that hints of other nodes cause. */
  readonly recheckPauseMs: number;
}

export const createFeed = ({ db, onError, recheckPauseMs }: FeedDeps) => {
  const groups = new Map<string, Group>();

  const publish = (tenantId: string, published: Published): void => {
    for (const show of groups.get(tenantId)?.viewers ?? []) show(published);
  };

  const showNext = (group: Group, event: DispatchedEvent): void => {
    if (group.shown !== null && event.sequence <= group.shown) return;
    group.shown = event.sequence;
    publish(event.tenantId, toPublished(event));
  };

  /** Reads and shows the events after the last one shown, so viewers see a tenant's events in order and without gaps. */
  const catchUp = async (tenantId: string, group: Group): Promise<void> => {
    group.isBehind = true;
    if (group.reading || group.shown === null) return;
    group.reading = true;
    try {
      while (group.isBehind && group.viewers.size > 0) {
        group.isBehind = false;
        const events = await readAfter(db, tenantId, group.shown);
        for (const event of events) showNext(group, event);
        group.isBehind ||= events.length === PAGE;
      }
    } finally {
      group.reading = false;
    }
  };

  const dispatched = (event: DispatchedEvent): void => {
    const group = groups.get(event.tenantId);
    if (group === undefined) return;
    if (group.shown !== null && event.sequence === group.shown + 1) showNext(group, event);
    else if (group.shown === null || event.sequence > group.shown) void catchUp(event.tenantId, group).catch(onError);
  };

  const gather = (tenantId: string): Group => {
    const begin = async (): Promise<void> => {
      group.shown = (await newestPosition(db, tenantId)).sequence;
      if (group.isBehind) void catchUp(tenantId, group).catch(onError);
    };
    const recheck = coalesced(() => catchUp(tenantId, group), { pauseMs: recheckPauseMs, onError });
    const group: Group = { viewers: new Set(), ready: Promise.resolve().then(begin), shown: null, reading: false, isBehind: false, recheck };
    groups.set(tenantId, group);
    return group;
  };

  /** Await `ready` before reading the tenant's present position: the viewer gets every event from there on. */
  const join = (tenantId: string, show: Show): { readonly ready: Promise<void>; readonly leave: () => void } => {
    const group = groups.get(tenantId) ?? gather(tenantId);
    group.viewers.add(show);
    const leave = (): void => {
      group.viewers.delete(show);
      if (group.viewers.size === 0 && groups.get(tenantId) === group) groups.delete(tenantId);
    };
    return { ready: group.ready, leave };
  };

  return {
    join,
    publish,
    dispatched,
    recheck: (tenantId: string): boolean => {
      const group = groups.get(tenantId);
      group?.recheck();
      return group !== undefined;
    },
    recheckAll: async (): Promise<void> => {
      for (const [tenantId, group] of groups) await catchUp(tenantId, group);
    },
    isWatched: (tenantId: string): boolean => groups.has(tenantId),
    viewers: (): number => [...groups.values()].reduce((sum, { viewers }) => sum + viewers.size, 0),
  };
};
