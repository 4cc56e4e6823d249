// The live feed of a tenant: durable events from where a viewer left off, then everything as it happens, hints included.
import { contract, type LiveEvent } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { coalesced } from "../../core/coalesced.ts";
import type { DispatchedEvent, Hint } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import type { Db } from "../../platform/db.ts";
import type { Job } from "../../platform/jobs.ts";
import { createBuffer } from "./buffer.ts";
import { accepts, type Filter } from "./filter.ts";
import { findPosition, lastPosition, readAfter } from "./store.ts";

export interface LiveSettings {
  /** A viewer that falls further behind is cut off and resumes from its last id. */
  readonly bufferedEvents: number;
  /** How late a viewer may see an event that another node dispatched and whose hint was lost. */
  readonly lookEveryMs: number;
  /** Between two looks that tidings of other nodes ask for. */
  readonly lookPauseMs: number;
  /** The most that is replayed; who missed more reads the lists again. */
  readonly replayedEvents: number;
}

export interface LiveDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly settings?: Partial<LiveSettings>;
  readonly onError?: (error: unknown) => void;
}

export interface Live {
  readonly handlers: Handlers<typeof contract.live>;
  /** For the outbox to call with what was dispatched, in order. */
  readonly dispatched: (events: readonly DispatchedEvent[]) => void;
  readonly hint: Hint;
  /** Something happened with the tenant on another node: reads it for whoever watches here. False when nobody does. */
  readonly look: (tenantId: string) => boolean;
  /** Finds what no hint told of. */
  readonly jobs: readonly Job[];
  readonly viewers: () => number;
}

const DEFAULTS: LiveSettings = { bufferedEvents: 1_000, lookEveryMs: 5_000, lookPauseMs: 100, replayedEvents: 1_000 };
const PAGE = 200;

interface Published {
  readonly event: LiveEvent;
  /** Null for hints. */
  readonly sequence: number | null;
}

interface Viewer {
  readonly filter: Filter;
  readonly push: (published: Published) => void;
}

/** All who watch one tenant. */
interface Group {
  readonly viewers: Set<Viewer>;
  /** Up to here the tenant's sequence was shown; null until it is known where it stood when the first one came. */
  shown: number | null;
  reading: boolean;
  /** There may be more than the last look saw. */
  isBehind: boolean;
  /** Soon, once for all who ask within a moment. */
  readonly look: () => void;
}

export const createLive = ({ db, clock, settings: given, onError = () => undefined }: LiveDeps): Live => {
  const settings = { ...DEFAULTS, ...given };
  const groups = new Map<string, Group>();

  const publish = (tenantId: string, published: Published): void => {
    for (const viewer of groups.get(tenantId)?.viewers ?? []) if (accepts(viewer.filter, published.event)) viewer.push(published);
  };

  const showNext = (group: Group, event: DispatchedEvent): void => {
    if (group.shown !== null && event.sequence <= group.shown) return;
    group.shown = event.sequence;
    publish(event.tenantId, toPublished(event));
  };

  /** Events of one tenant are shown in their order and without a gap, so what is missing before one is read first. */
  const catchUp = async (tenantId: string, group: Group): Promise<void> => {
    group.isBehind = true;
    if (group.reading || group.shown === null) return;
    group.reading = true;
    try {
      while (group.isBehind && group.viewers.size > 0) {
        group.isBehind = false;
        const events = await readAfter(db, tenantId, { sequence: group.shown, limit: PAGE });
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
    if (group.shown === null || event.sequence === group.shown + 1) showNext(group, event);
    else if (event.sequence > group.shown) void catchUp(event.tenantId, group).catch(onError);
  };

  const gather = (tenantId: string): Group => {
    const look = coalesced(() => catchUp(tenantId, group), { pauseMs: settings.lookPauseMs, onError });
    const group: Group = { viewers: new Set(), shown: null, reading: false, isBehind: false, look };
    groups.set(tenantId, group);
    const begin = async (): Promise<void> => {
      const last = await lastPosition(db, tenantId);
      group.shown ??= last;
      if (group.isBehind) await catchUp(tenantId, group);
    };
    void begin().catch(onError);
    return group;
  };

  const join = (tenantId: string, viewer: Viewer): (() => void) => {
    const group = groups.get(tenantId) ?? gather(tenantId);
    group.viewers.add(viewer);
    return () => {
      group.viewers.delete(viewer);
      if (group.viewers.size === 0 && groups.get(tenantId) === group) groups.delete(tenantId);
    };
  };

  const lookAtAll = async (): Promise<void> => {
    for (const [tenantId, group] of groups) await catchUp(tenantId, group);
  };

  async function* replay(tenantId: string, lastEventId: string, filter: Filter): AsyncGenerator<Published> {
    let after = await findPosition(db, tenantId, lastEventId);
    if (after === null) return;
    for (let seen = 0; seen < settings.replayedEvents; seen += PAGE) {
      const events = await readAfter(db, tenantId, { sequence: after, limit: PAGE });
      for (const event of events) {
        after = event.sequence;
        const published = toPublished(event);
        // Those that do not fit are passed over in silence, yet the place in the sequence moves on.
        if (accepts(filter, published.event)) yield published;
      }
      if (events.length < PAGE) return;
    }
  }

  return {
    handlers: implement(contract.live, {
      watch: async function* ({ scope, signal }, { types, deviceId, lastEventId }) {
        const filter: Filter = { types: types ?? null, deviceId: deviceId ?? null };
        const buffer = createBuffer<Published>(settings.bufferedEvents);
        // Listening begins before reading: what happens in between is seen twice rather than not at all, and told once.
        const leave = join(scope.tenantId, { filter, push: buffer.push });
        const stop = (): void => buffer.end();
        signal.addEventListener("abort", stop, { once: true });
        if (signal.aborted) stop();
        try {
          let last = 0;
          if (lastEventId) {
            for await (const { event, sequence } of replay(scope.tenantId, lastEventId, filter)) {
              if (signal.aborted) return;
              last = sequence ?? last;
              yield event;
            }
          }
          for await (const { event, sequence } of buffer) {
            if (sequence !== null && sequence <= last) continue;
            last = sequence ?? last;
            yield event;
          }
        } finally {
          signal.removeEventListener("abort", stop);
          leave();
        }
      },
    }),
    dispatched: (events) => {
      for (const event of events) dispatched(event);
    },
    hint: ({ scope, event, subjectId, data }) =>
      publish(scope.tenantId, { sequence: null, event: { id: null, type: event.type, subjectId, at: clock.now().toISOString(), data: recordOf(data) } }),
    look: (tenantId) => {
      const group = groups.get(tenantId);
      group?.look();
      return group !== undefined;
    },
    jobs: [{ name: "live.look", everyMs: settings.lookEveryMs, run: lookAtAll }],
    viewers: () => [...groups.values()].reduce((sum, { viewers }) => sum + viewers.size, 0),
  };
};

const toPublished = ({ eventId, sequence, type, subjectId, createdAt, data }: DispatchedEvent): Published => ({
  sequence,
  event: { id: eventId, type, subjectId, at: createdAt.toISOString(), data: { ...data } },
});

const recordOf = (data: unknown): Record<string, unknown> => (typeof data === "object" && data !== null ? { ...data } : {});
