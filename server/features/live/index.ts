// The live feed of a tenant: durable events from where a viewer left off, then everything as it happens, hints included.
import { contract, type LiveEvent } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { DispatchedEvent, Hint } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import type { Db } from "../../platform/db.ts";
import { createBuffer } from "./buffer.ts";
import { accepts, type Filter } from "./filter.ts";
import { findPosition, readAfter } from "./store.ts";

export interface LiveSettings {
  /** A viewer that falls further behind is cut off and resumes from its last id. */
  readonly bufferedEvents: number;
  /** The most that is replayed; who missed more reads the lists again. */
  readonly replayedEvents: number;
}

export interface LiveDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly settings?: Partial<LiveSettings>;
}

export interface Live {
  readonly handlers: Handlers<typeof contract.live>;
  /** For the outbox to call with what was dispatched, in order. */
  readonly dispatched: (events: readonly DispatchedEvent[]) => void;
  readonly hint: Hint;
  readonly viewers: () => number;
}

const DEFAULTS: LiveSettings = { bufferedEvents: 1_000, replayedEvents: 1_000 };
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

export const createLive = ({ db, clock, settings: given }: LiveDeps): Live => {
  const settings = { ...DEFAULTS, ...given };
  const viewers = new Map<string, Set<Viewer>>();

  const publish = (tenantId: string, published: Published): void => {
    for (const viewer of viewers.get(tenantId) ?? []) if (accepts(viewer.filter, published.event)) viewer.push(published);
  };

  const join = (tenantId: string, viewer: Viewer): (() => void) => {
    const group = viewers.get(tenantId) ?? new Set();
    viewers.set(tenantId, group.add(viewer));
    return () => {
      group.delete(viewer);
      if (group.size === 0 && viewers.get(tenantId) === group) viewers.delete(tenantId);
    };
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
      for (const event of events) publish(event.tenantId, toPublished(event));
    },
    hint: ({ scope, event, subjectId, data }) =>
      publish(scope.tenantId, { sequence: null, event: { id: null, type: event.type, subjectId, at: clock.now().toISOString(), data: recordOf(data) } }),
    viewers: () => [...viewers.values()].reduce((sum, { size }) => sum + size, 0),
  };
};

const toPublished = ({ eventId, sequence, type, subjectId, createdAt, data }: DispatchedEvent): Published => ({
  sequence,
  event: { id: eventId, type, subjectId, at: createdAt.toISOString(), data: { ...data } },
});

const recordOf = (data: unknown): Record<string, unknown> => (typeof data === "object" && data !== null ? { ...data } : {});
