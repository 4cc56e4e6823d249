// Presence flush: once a second writes what sessions have heard since the last flush, one statement per thousand sessions.
// Every few seconds it also looks for sessions that were superseded, because evictions can get lost: it compares digests of all sessions with the last ones
// of the database, and asks about the sessions behind a digest that has changed.

import type { Clock } from "../../core/clock.ts";
import { digestPart, type PresenceUpdate, type SocketPresence } from "../../core/ports/agent-sessions.ts";
import { chunk } from "../../core/rows/chunk.ts";
import { metricsOf } from "./heartbeat.ts";
import { type AgentSession, holdsPresence, noteNews } from "./session.ts";
import type { SessionCloser } from "./session-closer.ts";
import type { SessionRegistry } from "./session-registry.ts";
import type { ChannelSettings } from "./settings.ts";
import type { ChannelMeters } from "./stats.ts";

export interface PresenceFlushDeps {
  readonly presence: Pick<SocketPresence, "flush" | "closed" | "digests">;
  readonly closeSuperseded: SessionCloser["closeSuperseded"];
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly meters: ChannelMeters;
  readonly registry: Pick<SessionRegistry, "ready" | "news" | "changed" | "lost">;
  /** Renews the sessions' entries among the session owners. */
  readonly claim: (sessions: readonly AgentSession[]) => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}

const take = (session: AgentSession, nowMs: number): PresenceUpdate => {
  const { heartbeatAt, heartbeat } = session;
  session.heartbeatAt = null;
  session.heartbeat = null;
  return {
    deviceId: session.deviceId,
    epoch: session.epoch,
    seenAgoMs: nowMs - session.lastSeenAt,
    patienceMs: session.patienceMs,
    heartbeatAgoMs: heartbeatAt === null ? null : nowMs - heartbeatAt,
    metrics: heartbeat === null ? null : metricsOf(heartbeat),
  };
};

/** After a failed write; anything newer that the session has heard meanwhile wins. */
const restore = (session: AgentSession, update: PresenceUpdate, nowMs: number): void => {
  session.heartbeat ??= update.metrics === null ? null : { metrics: update.metrics };
  session.heartbeatAt ??= update.heartbeatAgoMs === null ? null : nowMs - update.heartbeatAgoMs;
};

export const createPresenceFlush = ({ presence, closeSuperseded, clock, settings, meters, registry, claim, onError }: PresenceFlushDeps) => {
  let flushing: Promise<void> | null = null;
  let checkedAt = clock.elapsed();
  /** An entry lives for minutes, so most flushes renew none. */
  const renew = (sessions: readonly AgentSession[], afterMs: number): void => {
    const nowMs = clock.elapsed();
    const due = sessions.filter(({ claimedAt }) => nowMs - claimedAt >= afterMs);
    for (const session of due) session.claimedAt = nowMs;
    void claim(due).catch(onError);
  };

  const flushChunk = async (sessions: readonly AgentSession[], everyone: boolean): Promise<void> => {
    const nowMs = clock.elapsed();
    const taken = sessions.map((session) => ({ session, update: take(session, nowMs) }));
    try {
      const current = await presence.flush(taken.map(({ update }) => update));
      const held = sessions.filter(holdsPresence);
      renew(
        held.filter(({ deviceId }) => current.has(deviceId)),
        everyone ? 0 : settings.claimEveryMs,
      );
      const doubtful = held.filter(({ deviceId }) => !current.has(deviceId));
      if (doubtful.length > 0) await closeSuperseded(doubtful).catch(onError);
    } catch (error) {
      for (const { session, update } of taken) {
        noteNews(session, registry.news);
        restore(session, update, nowMs);
      }
      onError(error);
    }
  };

  const flushLost = async (): Promise<void> => {
    const sessions = registry.lost.splice(0);
    for (const some of chunk(sessions, settings.flushChunk))
      await presence.closed(some).catch((error: unknown) => {
        for (const session of some) registry.lost.push(session);
        onError(error);
      });
  };

  const isHeld = (session: AgentSession): boolean => holdsPresence(session) && registry.ready.get(session.deviceId) === session;
  /** The sessions to write. Those without presence either get it later, or are over. */
  const takeNews = (everyone: boolean): readonly AgentSession[] => {
    const news = registry.news.splice(0);
    for (const session of news) session.seen = false;
    return everyone ? [...registry.ready.values()].filter(holdsPresence) : news.filter(isHeld);
  };

  let known: ReadonlyMap<string, string> = new Map();
  const closeStale = async (): Promise<void> => {
    const parts = new Set(registry.changed);
    registry.changed.clear();
    try {
      const digests = await presence.digests();
      for (const part of [...known.keys(), ...digests.keys()]) if (known.get(part) !== digests.get(part)) parts.add(part);
      const doubtful = parts.size === 0 ? [] : [...registry.ready.values()].filter((each) => holdsPresence(each) && parts.has(digestPart(each.deviceId)));
      for (const some of chunk(doubtful, settings.flushChunk)) await closeSuperseded(some);
      known = digests;
    } catch (error) {
      for (const part of parts) registry.changed.add(part);
      onError(error);
    }
  };

  const run = async (everyone: boolean): Promise<void> => {
    await flushLost();
    const due = takeNews(everyone);
    if (registry.ready.size === 0) return;
    const startedMs = clock.elapsed();
    for (const some of chunk(due, settings.flushChunk)) await flushChunk(some, everyone);
    if (!everyone && startedMs - checkedAt >= settings.checkEveryMs) {
      checkedAt = startedMs;
      await closeStale();
    }
    meters.presenceFlush((clock.elapsed() - startedMs) / 1_000);
  };

  /** One flush runs at a time: a call during a flush waits for that one, and a flush of everyone waits for it and then runs its own. */
  return (everyone = false): Promise<void> => {
    if (flushing !== null && !everyone) return flushing;
    const mine = (flushing ?? Promise.resolve())
      .then(() => run(everyone))
      .finally(() => {
        if (flushing === mine) flushing = null;
      });
    flushing = mine;
    return mine;
  };
};
