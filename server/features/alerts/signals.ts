// Events as rules see them: the outbox hands over every event, and those that a rule of their tenant waits for are kept.
import type { Clock } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import type { Consumer } from "../../platform/outbox/outbox.ts";
import { findEventTypes } from "./store/rules.ts";
import { insertSignals, type Signal } from "./store/signals.ts";

/** A rule that was made on another node counts events from so long after. */
const CACHE_MS = 5_000;

const keyOf = (tenantId: string, type: string): string => `${tenantId} ${type}`;

const signalOf = ({ tenantId, eventId, type, subjectId, data, createdAt }: DispatchedEvent): Signal => {
  const deviceId = typeof data["deviceId"] === "string" ? data["deviceId"] : subjectId;
  return { tenantId, eventId, type, targetId: deviceId.startsWith("dev_") ? deviceId : subjectId, at: createdAt };
};

/** The relay is a hot path: while no rule waits for an event, it pays one look into a set per event. */
export const createSignals = ({ clock }: { readonly clock: Pick<Clock, "elapsed"> }) => {
  let wanted: ReadonlySet<string> = new Set();
  let readAtMs = Number.NEGATIVE_INFINITY;
  const read = async (tx: Clients): Promise<void> => {
    const before = readAtMs;
    readAtMs = clock.elapsed();
    try {
      wanted = new Set((await findEventTypes(tx)).map(({ tenantId, type }) => keyOf(tenantId, type)));
    } catch (error) {
      readAtMs = before;
      throw error;
    }
  };
  const consumer: Consumer = async (tx, events) => {
    if (clock.elapsed() - readAtMs > CACHE_MS) await read(tx);
    if (wanted.size === 0) return;
    const signals = events.filter(({ tenantId, type }) => wanted.has(keyOf(tenantId, type))).map(signalOf);
    if (signals.length > 0) await insertSignals(tx, signals);
  };
  return {
    consumer,
    /** The rules have changed. */
    forget: (): void => {
      readAtMs = Number.NEGATIVE_INFINITY;
    },
  };
};
