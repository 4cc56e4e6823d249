// Transactional outbox: an event is written in the transaction of its cause and dispatched after the commit, in order, at least once.
// The relay takes what waits and keeps no cursor, so it never skips a transaction that commits late.
import type { Tx } from "../../core/database.ts";
import type { DispatchedEvent, Emit } from "../../core/events.ts";
import { becomeLeader } from "../../core/leader-election.ts";
import type { FindStuck } from "../../core/people/stuck.ts";
import { inRounds } from "../../core/rows/retention.ts";
import { runAs, Work } from "../../core/work.ts";
import type { Db } from "../database/db.ts";
import type { Job } from "../jobs.ts";
import { countUndispatched, deleteOldEvents, dispatchNext, findWaiting, insertEvents, isWaiting, type OutboxFigures } from "./outbox-rows.ts";

/** Runs in the relay's transaction: its writes and the dispatch of the events are atomic. After a failure it may see an event again. */
export type Consumer = (tx: Tx, events: readonly DispatchedEvent[]) => Promise<void>;
/** A live view on this node, called after the commit. It reads events of other nodes' relays by itself, on a hint or now and then. */
export type EventSubscriber = (events: readonly DispatchedEvent[]) => void;

export interface OutboxDeps {
  readonly db: Db;
  readonly onError: (what: string, error: unknown) => void;
  readonly settings?: Partial<OutboxSettings>;
}

export interface OutboxSettings {
  readonly relayEveryMs: number;
  readonly relayBatch: number;
  /** Delay from emitting an event to the relay: its transaction needs a moment to commit, and one run takes the events of a busy moment together. */
  readonly wakeAfterMs: number;
  readonly keepDays: number;
  readonly retentionEveryMs: number;
  readonly retentionBatch: number;
}

export interface Outbox {
  readonly emit: Emit;
  /** Relay and retention. */
  readonly jobs: readonly Job[];
  /** Call this before the relay starts; the log shows the name. */
  consume(name: string, consumer: Consumer): void;
  subscribe(subscriber: EventSubscriber): () => void;
  /** Call this after a commit; the relay runs soon. */
  wake(): void;
  /** For the metrics page. */
  figures(): Promise<OutboxFigures>;
  readonly stuck: FindStuck;
  close(): Promise<void>;
}

/** The relay runs every second. */
const STUCK_SECONDS = 60;

const DEFAULTS: OutboxSettings = {
  relayEveryMs: 1_000,
  relayBatch: 500,
  wakeAfterMs: 40,
  keepDays: 30,
  retentionEveryMs: 600_000,
  retentionBatch: 5_000,
};

export const createOutbox = ({ db, onError, settings: given }: OutboxDeps): Outbox => {
  const settings = { ...DEFAULTS, ...given };
  const consumers: { readonly name: string; readonly consumer: Consumer }[] = [];
  const subscribers = new Set<EventSubscriber>();
  let timer: NodeJS.Timeout | null = null;
  let running: Promise<number> | null = null;
  let closed = false;

  const tell = (events: readonly DispatchedEvent[]): void => {
    for (const subscriber of subscribers) {
      try {
        subscriber(events);
      } catch (error) {
        onError("outbox subscriber", error);
      }
    }
  };

  const relay = createRelay({ db, consumers, onError, batch: settings.relayBatch });
  const relayOnce = async (): Promise<number> => {
    const events = await relay();
    if (events.length > 0) tell(events);
    return events.length;
  };
  /** One run at a time in this process, so that subscribers see one order. Returns how many events it has dispatched. It is background work, whoever wakes it. */
  const run = (): Promise<number> =>
    (running ??= runAs(new Work("jobs"), relayOnce).finally(() => {
      running = null;
    }));

  const wakeAfter = (ms: number): void => {
    if (timer !== null || closed) return;
    timer = setTimeout(() => {
      timer = null;
      void run().then(
        (count) => {
          // A full round leaves others waiting, and the time of the round has gathered more.
          if (count > 0) wakeAfter(count < settings.relayBatch ? settings.wakeAfterMs : 0);
        },
        (error: unknown) => onError("outbox relay", error),
      );
    }, ms);
    timer.unref();
  };
  const wake = (): void => wakeAfter(settings.wakeAfterMs);

  return {
    emit: async (tx, events) => {
      await insertEvents(tx, events);
      wake();
    },
    jobs: [
      // A node that has nothing to do finds that out with one small read.
      { name: "outbox.relay", everyMs: settings.relayEveryMs, run: async () => (await isWaiting(db)) && (await run()) > 0 },
      {
        name: "outbox.retention",
        everyMs: settings.retentionEveryMs,
        run: inRounds(settings.retentionBatch, (batch) => deleteOldEvents(db, settings.keepDays, batch)),
      },
    ],
    consume: (name, consumer) => void consumers.push({ name, consumer }),
    subscribe: (subscriber) => {
      subscribers.add(subscriber);
      return () => void subscribers.delete(subscriber);
    },
    wake,
    figures: () => countUndispatched(db),
    stuck: async (limit) =>
      (await findWaiting(db, STUCK_SECONDS, limit)).map(({ tenant_id, event_id, since, count }) => ({
        kind: "event_undispatched",
        tenantId: tenant_id,
        id: event_id,
        since,
        reason: `the tenant's ${count} events since this one are not dispatched: the relay does not run, or a consumer fails`,
        whatToDo: "Look for the consumer's error in the log and at the job outbox.relay, and run it.",
      })),
    close: async () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await running?.catch((error: unknown) => onError("outbox relay", error));
    },
  };
};

interface RelayDeps {
  readonly db: Db;
  readonly consumers: readonly { readonly name: string; readonly consumer: Consumer }[];
  readonly onError: OutboxDeps["onError"];
  readonly batch: number;
}

/** Dispatches the next events and returns them. When a consumer fails, only the tenant of that event waits. */
const createRelay = ({ db, consumers, onError, batch }: RelayDeps) => {
  const dispatch = (limit: number, held: readonly string[]): Promise<readonly DispatchedEvent[]> =>
    db.tx(async (tx) => {
      if (!(await becomeLeader(tx, "outboxRelay"))) return [];
      // Written first, because consumers lock rows that others wait for.
      const events = await dispatchNext(tx, limit, held);
      if (events.length === 0) return [];
      for (const { name, consumer } of consumers) {
        try {
          await consumer(tx, events);
        } catch (error) {
          throw new ConsumerFailed(name, events[0]?.tenantId ?? "", error);
        }
      }
      return events;
    });

  // One event per transaction finds the one that fails. It waits, with all later events of its tenant, until the next round.
  const oneByOne = async (): Promise<readonly DispatchedEvent[]> => {
    const done: DispatchedEvent[] = [];
    const held = new Set<string>();
    for (let count = 0; count < batch; count += 1) {
      try {
        const events = await dispatch(1, [...held]);
        if (events.length === 0) break;
        done.push(...events);
      } catch (error) {
        if (!(error instanceof ConsumerFailed)) throw error;
        onError(`outbox consumer ${error.consumer}, tenant ${error.tenantId} waits`, error.cause);
        held.add(error.tenantId);
      }
    }
    return done;
  };

  return async (): Promise<readonly DispatchedEvent[]> => {
    try {
      return await dispatch(batch, []);
    } catch (error) {
      if (!(error instanceof ConsumerFailed)) throw error;
      return oneByOne();
    }
  };
};

class ConsumerFailed extends Error {
  readonly consumer: string;
  readonly tenantId: string;

  constructor(consumer: string, tenantId: string, cause: unknown) {
    super(`outbox consumer ${consumer} failed`, { cause });
    this.consumer = consumer;
    this.tenantId = tenantId;
  }
}
