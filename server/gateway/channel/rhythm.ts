// How often agents beat: the more of them there are, the more seldom, and half as often while the node is overloaded.
// Nobody is called silent because of a change: patience grows before the agent hears of it, and shrinks after it was heard by it.
import type { z } from "zod";
import type { HeartbeatPlan } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Roster } from "./roster.ts";
import { type Session, send } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";

/** The interface lets an agent be silent no longer between two beats. */
export const MAX_HEARTBEAT_SECONDS = 300;
/** Smaller changes than by a fifth are not worth a frame to everybody. */
const WORTH_TELLING = 0.2;

export interface Crowding {
  /** Of the whole installation. */
  readonly connections: number;
  /** Of the whole installation, this one included. */
  readonly liveNodes: number;
  readonly overloaded: boolean;
}

export interface Pace {
  /** Never more often than this. */
  readonly leastSeconds: number;
  /** As many heartbeats as one node takes in a second. */
  readonly perSecond: number;
}

/** Keeps the heartbeats of the installation within the budget of its live nodes, and the interval within what the settings and the interface allow. */
export const plannedSeconds = (current: number, { connections, liveNodes, overloaded }: Crowding, { leastSeconds, perSecond }: Pace): number => {
  const most = Math.max(leastSeconds, MAX_HEARTBEAT_SECONDS);
  const fitting = Math.max(leastSeconds, Math.ceil(connections / (Math.max(1, liveNodes) * perSecond))) * (overloaded ? 2 : 1);
  const planned = Math.min(most, fitting);
  return Math.abs(planned - current) < current * WORTH_TELLING && planned !== leastSeconds ? current : planned;
};

/** As `welcome` and `config` tell it. */
export const heartbeatPlan = (intervalSec: number, { heartbeatJitterPct, heartbeatGraceMs }: ChannelSettings): z.output<typeof HeartbeatPlan> => ({
  intervalSec,
  jitterPct: heartbeatJitterPct,
  graceMs: heartbeatGraceMs,
});

export interface RhythmDeps {
  readonly roster: Pick<Roster, "ready">;
  readonly clock: Clock;
  readonly settings: ChannelSettings;
}

export interface Rhythm {
  /** What a new session is told; it is remembered with it. */
  begin(session: Session): number;
  /** Tells a share of those who keep another interval; the rest with the next looks. */
  look(crowding: Crowding): void;
  readonly seconds: number;
}

export const createRhythm = ({ roster, clock, settings }: RhythmDeps): Rhythm => {
  const { heartbeatSeconds: least } = settings;
  let seconds = least;
  const patienceOf = (intervalSec: number): number => settings.silenceMs + 3 * (intervalSec - least) * 1_000;

  const keep = (session: Session): void => {
    session.heartbeatSeconds = seconds;
    session.toldAt = clock.elapsed();
  };
  const tell = (session: Session): void => {
    keep(session);
    session.patienceMs = Math.max(session.patienceMs, patienceOf(seconds));
    // Its presence is written anew, with the new patience, before the agent makes use of it.
    session.seen = true;
    send(session, { op: "config", data: { heartbeat: heartbeatPlan(seconds, settings) } }, clock);
  };

  return {
    get seconds() {
      return seconds;
    },
    begin: (session) => {
      keep(session);
      session.patienceMs = patienceOf(seconds);
      return seconds;
    },
    look: (crowding) => {
      seconds = plannedSeconds(seconds, crowding, { leastSeconds: least, perSecond: settings.heartbeatsPerSecond });
      let left = settings.configsPerTick;
      for (const session of roster.ready.values()) {
        if (session.phase !== "ready") continue;
        if (session.heartbeatSeconds !== seconds && left > 0) {
          left -= 1;
          tell(session);
        } else if (session.lastSeenAt > session.toldAt) session.patienceMs = patienceOf(session.heartbeatSeconds);
      }
    },
  };
};
