// Presence is written behind: what sessions have heard is gathered and flushed every few seconds, in one statement per thousand.
import { CLOSE } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Beat, SocketPresence } from "../../core/sessions.ts";
import type { Roster } from "./roster.ts";
import { endSession, type Session } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";
import type { ChannelMeters, ChannelStats } from "./stats.ts";

export interface BeatsDeps {
  readonly presence: SocketPresence;
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly stats: ChannelStats;
  readonly meters: ChannelMeters;
  readonly roster: Pick<Roster, "ready" | "lost">;
  /** False while hints between nodes get lost: then nobody is told of a newer session elsewhere, so everybody is asked about. */
  readonly hintsArrive: () => boolean;
  /** Keeps the sessions' entries in the directory alive. */
  readonly claim: (sessions: readonly Session[]) => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}

const take = (session: Session, nowMs: number): Beat => {
  const { heartbeatAt, metrics } = session;
  session.seen = false;
  session.heartbeatAt = null;
  session.metrics = null;
  return {
    deviceId: session.agent.deviceId,
    epoch: session.epoch,
    seenAgoMs: nowMs - session.lastSeenAt,
    heartbeatAgoMs: heartbeatAt === null ? null : nowMs - heartbeatAt,
    metrics,
  };
};

// What could not be written is news still, unless something newer has come.
const restore = (session: Session, beat: Beat, nowMs: number): void => {
  session.seen = true;
  session.metrics ??= beat.metrics;
  session.heartbeatAt ??= beat.heartbeatAgoMs === null ? null : nowMs - beat.heartbeatAgoMs;
};

export const createBeats = ({ presence, clock, settings, stats, meters, roster, hintsArrive, claim, onError }: BeatsDeps) => {
  let flushing: Promise<void> | null = null;

  const flushChunk = async (sessions: readonly Session[]): Promise<void> => {
    const nowMs = clock.elapsed();
    const taken = sessions.map((session) => ({ session, beat: take(session, nowMs) }));
    try {
      const current = await presence.flush(taken.map(({ beat }) => beat));
      // Whose row has moved on belongs to a newer session elsewhere.
      for (const session of sessions.filter(({ phase, agent }) => phase === "ready" && !current.has(agent.deviceId))) {
        stats.staleEvictions += 1;
        endSession(session, CLOSE.superseded);
      }
      void claim(sessions.filter((session) => session.phase === "ready" && current.has(session.agent.deviceId))).catch(onError);
    } catch (error) {
      for (const { session, beat } of taken) restore(session, beat, nowMs);
      onError(error);
    }
  };

  const flushLost = async (): Promise<void> => {
    const sessions = roster.lost.splice(0);
    if (sessions.length === 0) return;
    await presence.closed(sessions).catch((error: unknown) => {
      roster.lost.unshift(...sessions);
      onError(error);
    });
  };

  const run = async (everyone: boolean): Promise<void> => {
    await flushLost();
    const due = [...roster.ready.values()].filter((session) => (everyone || session.seen) && session.phase === "ready");
    if (due.length === 0) return;
    const startedMs = clock.elapsed();
    for (let from = 0; from < due.length; from += settings.flushChunk) await flushChunk(due.slice(from, from + settings.flushChunk));
    meters.presenceFlush((clock.elapsed() - startedMs) / 1_000);
  };

  /** One at a time; a call while one runs waits for that one, and one about everyone for its own. */
  return (everyone = !hintsArrive()): Promise<void> => {
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
