// Presence flush: once a second writes what sessions have heard since the last flush, one statement per thousand sessions.
// Every few seconds it also asks the database whether the quiet sessions still are the newest of their devices, because evictions can get lost.
import { chunk } from "../../core/chunk.ts";
import type { Clock } from "../../core/clock.ts";
import type { PresenceUpdate, SocketPresence } from "../../core/sessions.ts";
import { metricsOf } from "./heartbeat.ts";
import { type AgentSession, holdsPresence } from "./session.ts";
import type { SessionCloser } from "./session-closer.ts";
import type { SessionRegistry } from "./session-registry.ts";
import type { ChannelSettings } from "./settings.ts";
import type { ChannelMeters } from "./stats.ts";

export interface PresenceFlushDeps {
  readonly presence: Pick<SocketPresence, "flush" | "closed">;
  readonly closeSuperseded: SessionCloser["closeSuperseded"];
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly meters: ChannelMeters;
  readonly registry: Pick<SessionRegistry, "ready" | "lost">;
  /** Renews the sessions' entries among the session owners. */
  readonly claim: (sessions: readonly AgentSession[]) => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}

const take = (session: AgentSession, nowMs: number): PresenceUpdate => {
  const { heartbeatAt, heartbeat } = session;
  session.seen = false;
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
  session.seen = true;
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
      for (const { session, update } of taken) restore(session, update, nowMs);
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

  const run = async (everyone: boolean): Promise<void> => {
    await flushLost();
    const all = [...registry.ready.values()].filter(holdsPresence);
    if (all.length === 0) return;
    const startedMs = clock.elapsed();
    const isDue = ({ seen }: AgentSession): boolean => everyone || seen;
    for (const some of chunk(all.filter(isDue), settings.flushChunk)) await flushChunk(some, everyone);
    if (!everyone && startedMs - checkedAt >= settings.checkEveryMs) {
      checkedAt = startedMs;
      for (const some of chunk(
        all.filter((session) => !isDue(session)),
        settings.flushChunk,
      ))
        await closeSuperseded(some).catch(onError);
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
