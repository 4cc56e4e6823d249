// The live feed of a tenant: the durable events since a viewer left off, then every event and hint as it happens.

import type { z } from "zod";
import { contract, type EventType, type LiveEvent, type TenantId } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { DispatchedEvent, Happened } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import type { DeviceRef } from "../../core/ports/delivery.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature } from "../kit.ts";
import { type CountOpenAlerts, createBadges } from "./badges.ts";
import { createBuffer } from "./buffer.ts";
import { createFeed, type Published, toPublished } from "./feed.ts";
import { accepts, deviceOf, type Filter, isAskedFor } from "./filter.ts";
import { findBeginning, readMissed } from "./resume.ts";
import { createSeenTicks, type ReadSeen } from "./seen.ts";
import { readNewest, readNotable } from "./store.ts";
import { createStreamCount, type StreamBounds } from "./streams.ts";
import { createUntil, type Until } from "./until.ts";

export interface LiveSettings extends StreamBounds {
  /** Cuts off a viewer that falls further behind; it resumes from its last id. */
  readonly bufferedEvents: number;
  /** A viewer sees an event of another node up to this late when the hint is lost. */
  readonly recheckEveryMs: number;
  /** Pause between two reads that hints of other nodes cause. */
  readonly recheckPauseMs: number;
  /** Replays at most this many; a viewer that missed more gets a gap and reads the lists again. */
  readonly replayedEvents: number;
  /** After this many events that its filter hides, a viewer gets a position event, so it need not replay all of them when it resumes. */
  readonly hiddenEvents: number;
  /** At most one `device.seen` per device and viewer in this time. */
  readonly seenEveryMs: number;
  /** Counts for badges are read at most so often for viewers who see the same. */
  readonly badgesPauseMs: number;
  /** Counts for badges are read so often without any event. */
  readonly badgesEveryMs: number;
}

export interface LiveDeps {
  readonly db: Db;
  readonly clock: Clock;
  /** The name that an event shows beside its device's id. */
  readonly deviceNames?: (device: DeviceRef) => Promise<string | null>;
  readonly settings?: Partial<LiveSettings>;
  readonly onError?: (error: unknown) => void;
  readonly readSeen?: ReadSeen;
  readonly countOpenAlerts: CountOpenAlerts;
  /** Whether a caller who is limited to some devices may see events of this one. */
  readonly isShown: (scope: SystemScope, deviceId: string) => Promise<boolean>;
}

export interface Live extends Feature<typeof contract.live> {
  readonly jobs: readonly Job[];
  /** The outbox calls it with dispatched events, in order. */
  readonly dispatched: (events: readonly DispatchedEvent[]) => void;
  /** Shows an event to the viewers of this node. */
  readonly hint: (event: Happened) => void;
  /** Whether the tenant has viewers on this node. */
  readonly isWatched: (tenantId: string) => boolean;
  /** Something changed in the tenant on another node: reads the new events for its viewers here. False when there are none. */
  readonly recheck: (tenantId: string) => boolean;
  readonly viewers: () => number;
  readonly takePlace: ReturnType<typeof createStreamCount>;
  readonly until: Until;
  /** The tenant's newest durable events, newest first; of the newest thousand those that a limited caller may know. */
  readonly recent: (scope: SystemScope, limit: number) => Promise<readonly DispatchedEvent[]>;
  /** Likewise, of the newest two thousand, without commands that succeeded. */
  readonly notable: (scope: SystemScope, limit: number) => Promise<readonly DispatchedEvent[]>;
}

const DEFAULTS: LiveSettings = {
  bufferedEvents: 1_000,
  recheckEveryMs: 5_000,
  recheckPauseMs: 100,
  replayedEvents: 1_000,
  hiddenEvents: 100,
  seenEveryMs: 5_000,
  badgesPauseMs: 1_000,
  badgesEveryMs: 60_000,
  streamsPerTenant: 200,
  streamsPerCredential: 20,
};

const NOTABLE_AMONG = 2_000;

type Sight = (published: Published) => Promise<Published | null>;
/** Yields what the viewer has missed and then what comes, each event once. */
async function* eachOnce(
  missed: AsyncIterable<Published>,
  coming: AsyncIterable<Published>,
  { signal, late }: { readonly signal: AbortSignal; readonly late: Sight | null },
): AsyncGenerator<LiveEvent> {
  let last = 0;
  for await (const { event, sequence } of missed) {
    if (signal.aborted) return;
    last = sequence ?? last;
    yield event;
  }
  for await (const published of coming) {
    const { sequence } = published;
    if (sequence !== null && sequence <= last) continue;
    last = sequence ?? last;
    const seen = late === null ? published : await late(published);
    if (seen !== null) yield seen.event;
  }
}

const { position, gap } = contract.live.events;

type About = Pick<z.output<typeof contract.live.operations.watch.input>, "deviceId" | "deviceIds" | "commandIds">;
const subjectsOf = ({ deviceId, deviceIds = [], commandIds = [] }: About): Filter["subjects"] => {
  const ids = [...(deviceId === undefined ? [] : [deviceId]), ...deviceIds, ...commandIds];
  return ids.length === 0 ? null : new Set(ids);
};

export type { Until } from "./until.ts";

export const createLive = (deps: LiveDeps): Live => {
  const { db, clock, isShown, deviceNames, readSeen = async () => [], settings: given, onError = () => undefined } = deps;
  const settings = { ...DEFAULTS, ...given };
  const feed = createFeed({ db, onError, recheckPauseMs: settings.recheckPauseMs });
  const takePlace = createStreamCount(settings);
  const ticks = createSeenTicks(readSeen);
  const badges = createBadges({ countOpenAlerts: deps.countOpenAlerts, pauseMs: settings.badgesPauseMs, onError });

  const toHint = ({ event, subjectId, data }: Happened): Published => ({
    sequence: null,
    event: { id: null, version: null, type: event.type, subjectId, at: clock.now().toISOString(), data: { ...data } },
  });

  /** An event about the stream itself. */
  const streamEvent = (
    { type }: EventType,
    tenantId: string,
    { id, version, data = {} }: Pick<LiveEvent, "id" | "version"> & Partial<LiveEvent>,
  ): LiveEvent => ({
    id,
    version,
    type,
    subjectId: tenantId,
    at: clock.now().toISOString(),
    data,
  });

  /** Hides events that are not for the viewer. Hidden events still advance the stream, so now and then a position event replaces one. */
  const createLens = (tenantId: string) => {
    let hidden = 0;
    return (published: Published, isAccepted: boolean): Published | null => {
      const { event, sequence } = published;
      if (isAccepted) {
        if (sequence !== null) hidden = 0;
        return published;
      }
      if (sequence === null) return null;
      hidden += 1;
      if (hidden < settings.hiddenEvents) return null;
      hidden = 0;
      return { sequence, event: streamEvent(position, tenantId, { id: event.id, version: sequence }) };
    };
  };

  /** A limited caller learns what happens to the devices it sees, and nothing about the tenant. */
  const mayKnow = async (scope: SystemScope, event: Pick<LiveEvent, "subjectId" | "data" | "type">): Promise<boolean> => {
    if (!isLimited(scope) || isAskedFor(event)) return true;
    const deviceId = deviceOf(event);
    return deviceId !== null && isShown(scope, deviceId);
  };

  /** The first of these events that a limited caller may know. */
  const firstKnown = async (scope: SystemScope, events: readonly DispatchedEvent[], limit: number): Promise<readonly DispatchedEvent[]> => {
    const known: DispatchedEvent[] = [];
    for (const event of events) {
      if (known.length === limit) break;
      if (await mayKnow(scope, { subjectId: event.subjectId, type: event.type, data: { ...event.data } })) known.push(event);
    }
    return known;
  };

  /** What a viewer sees of the events: `early` before they wait in the buffer, `late` after. */
  const createSight = (scope: TenantScope, filter: Filter) => {
    const see = createLens(scope.tenantId);
    const late = async (published: Published) => see(published, accepts(filter, published.event) && (await mayKnow(scope, published.event)));
    // Only a limited viewer needs the database.
    if (isLimited(scope)) return { early: (published: Published): Published | null => published, late };
    return { early: (published: Published): Published | null => see(published, accepts(filter, published.event)), late: null };
  };

  /** Yields where the stream begins, then the events that the viewer has missed. */
  async function* beginAfter(scope: TenantScope, filter: Filter, lastEventId: string | null): AsyncGenerator<Published> {
    const { tenantId } = scope;
    const { from, gap: lost } = await findBeginning(db, tenantId, { lastEventId, replayedEvents: settings.replayedEvents });
    const at = { id: from.eventId, version: from.sequence };
    const first = lost === null ? streamEvent(position, tenantId, at) : streamEvent(gap, tenantId, { ...at, data: lost });
    yield { sequence: from.sequence, event: first };
    if (lastEventId === null || lost !== null) return;
    const see = createLens(tenantId);
    for await (const missed of readMissed(db, tenantId, from.sequence)) {
      // Without an id, so a viewer that is cut off here gets the gap again when it resumes.
      if (typeof missed === "number")
        yield { sequence: null, event: streamEvent(gap, tenantId, { id: null, version: null, data: { reason: "expired", missed } }) };
      else {
        const published = toPublished(missed);
        const seen = see(published, accepts(filter, published.event) && (await mayKnow(scope, published.event)));
        if (seen !== null) yield seen;
      }
    }
  }

  const nameOf = (tenantId: TenantId, { subjectId, data }: LiveEvent): Promise<string | null> | null => {
    const deviceId = data["deviceId"] ?? subjectId;
    return deviceNames === undefined || typeof deviceId !== "string" || !deviceId.startsWith("dev_") ? null : deviceNames({ tenantId, deviceId });
  };
  const named = async (tenantId: TenantId, event: LiveEvent): Promise<LiveEvent> => {
    const name = nameOf(tenantId, event);
    return name === null ? event : { ...event, data: { ...event.data, deviceName: await name } };
  };

  return {
    handlers: implement(contract.live, {
      watch: async function* ({ scope, signal }, { types, lastEventId, seen: deviceIds = [], badges: isCounting, ...about }) {
        const place = takePlace(scope);
        const { tenantId } = scope;
        const filter: Filter = { types: types ?? null, subjects: subjectsOf(about), endsOnly: about.sample === "terminal" };
        const buffer = createBuffer<Published>(settings.bufferedEvents);
        const { early, late } = createSight(scope, filter);
        // Joins before reading, so it loses no event in between; the sequence number drops the ones that come twice.
        const { ready, leave } = feed.join(tenantId, (published) => {
          if (isCounting) badges.heard(tenantId, published.event.type);
          const seen = early(published);
          if (seen === null) return;
          // Begins to read the name, so that the names of many events come in one read.
          void nameOf(tenantId, seen.event);
          buffer.push(seen);
        });
        const endTicks = ticks.watch({ tenantId, deviceIds, show: (event) => buffer.push(toHint(event)) });
        const endBadges = isCounting ? badges.watch(scope, (event) => buffer.push(toHint(event))) : () => undefined;
        const stop = (): void => buffer.end();
        signal.addEventListener("abort", stop, { once: true });
        if (signal.aborted) stop();
        try {
          await ready;
          for await (const event of eachOnce(beginAfter(scope, filter, lastEventId || null), buffer, { signal, late })) yield await named(tenantId, event);
        } finally {
          signal.removeEventListener("abort", stop);
          endTicks();
          endBadges();
          leave();
          place();
        }
      },
    }),
    dispatched: (events) => void events.map(feed.dispatched),
    hint: (event) => feed.publish(event.scope.tenantId, toHint(event)),
    isWatched: feed.isWatched,
    recheck: feed.recheck,
    jobs: [
      { name: "live.recheck", everyMs: settings.recheckEveryMs, run: feed.recheckAll },
      { name: "live.seen", everyMs: settings.seenEveryMs, run: ticks.tick },
      { name: "live.badges", everyMs: settings.badgesEveryMs, run: async () => badges.recheck() },
    ],
    viewers: feed.viewers,
    takePlace,
    until: createUntil(feed, takePlace),
    recent: async (scope, limit) => {
      if (!isLimited(scope)) return readNewest(db, scope.tenantId, limit);
      return firstKnown(scope, await readNewest(db, scope.tenantId, settings.replayedEvents), limit);
    },
    notable: async (scope, limit) => {
      const events = await readNotable(db, scope.tenantId, NOTABLE_AMONG, isLimited(scope) ? settings.replayedEvents : limit);
      return isLimited(scope) ? firstKnown(scope, events, limit) : events;
    },
  };
};
