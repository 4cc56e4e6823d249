// Presence is written behind: what sessions have heard is gathered and flushed every second, in one statement per thousand.
// Every few seconds the same round asks about the others, whether they still are the newest: an eviction is a hint, and this is what makes up for it.
import { chunk } from "../../core/chunk.ts";
import type { Clock } from "../../core/clock.ts";
import type { Beat, SocketPresence } from "../../core/sessions.ts";
import { type Dismissal, isHeld } from "./dismissal.ts";
import { metricsOf } from "./heartbeat.ts";
import type { Roster } from "./roster.ts";
import type { Session } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";
import type { ChannelMeters } from "./stats.ts";

export interface BeatsDeps {
  readonly presence: Pick<SocketPresence, "flush" | "closed">;
  /** Closes those whose presence has gone to another session. */
  readonly check: Dismissal["check"];
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly meters: ChannelMeters;
  readonly roster: Pick<Roster, "ready" | "lost">;
  /** Keeps the sessions' entries in the directory alive. */
  readonly claim: (sessions: readonly Session[]) => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}

const take = (session: Session, nowMs: number): Beat => {
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

// What could not be written is news still, unless something newer has come.
const restore = (session: Session, beat: Beat, nowMs: number): void => {
  session.seen = true;
  session.heartbeat ??= beat.metrics === null ? null : { metrics: beat.metrics };
  session.heartbeatAt ??= beat.heartbeatAgoMs === null ? null : nowMs - beat.heartbeatAgoMs;
};

export const createBeats = ({ presence, check, clock, settings, meters, roster, claim, onError }: BeatsDeps) => {
  let flushing: Promise<void> | null = null;
  let checkedAt = clock.elapsed();
  /** An entry in the directory lives for some minutes, so it need not be told at each beat. */
  const renew = (sessions: readonly Session[], afterMs: number): void => {
    const nowMs = clock.elapsed();
    const due = sessions.filter(({ claimedAt }) => nowMs - claimedAt >= afterMs);
    for (const session of due) session.claimedAt = nowMs;
    void claim(due).catch(onError);
  };

  const flushChunk = async (sessions: readonly Session[], everyone: boolean): Promise<void> => {
    const nowMs = clock.elapsed();
    const taken = sessions.map((session) => ({ session, beat: take(session, nowMs) }));
    try {
      const current = await presence.flush(taken.map(({ beat }) => beat));
      const held = sessions.filter(isHeld);
      renew(
        held.filter(({ deviceId }) => current.has(deviceId)),
        everyone ? 0 : settings.claimEveryMs,
      );
      const doubtful = held.filter(({ deviceId }) => !current.has(deviceId));
      if (doubtful.length > 0) await check(doubtful).catch(onError);
    } catch (error) {
      for (const { session, beat } of taken) restore(session, beat, nowMs);
      onError(error);
    }
  };

  const flushLost = async (): Promise<void> => {
    const sessions = roster.lost.splice(0);
    for (const some of chunk(sessions, settings.flushChunk))
      await presence.closed(some).catch((error: unknown) => {
        for (const session of some) roster.lost.push(session);
        onError(error);
      });
  };

  const run = async (everyone: boolean): Promise<void> => {
    await flushLost();
    const all = [...roster.ready.values()].filter(isHeld);
    if (all.length === 0) return;
    const startedMs = clock.elapsed();
    const isDue = ({ seen }: Session): boolean => everyone || seen;
    for (const some of chunk(all.filter(isDue), settings.flushChunk)) await flushChunk(some, everyone);
    if (!everyone && startedMs - checkedAt >= settings.checkEveryMs) {
      checkedAt = startedMs;
      for (const some of chunk(
        all.filter((session) => !isDue(session)),
        settings.flushChunk,
      ))
        await check(some).catch(onError);
    }
    meters.presenceFlush((clock.elapsed() - startedMs) / 1_000);
  };

  /** One at a time; a call while one runs waits for that one, and one that writes everyone's presence for its own. */
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
