// Which close a session gets once its presence may belong to another one. An eviction is a hint that may be late or lost, and whoever is told to come
// back pushes its own newer session out: so the database is asked first, and says whether a newer session stands and whether it was handed over.

import { CLOSE, type Close, PING_PONG_WAIT_SEC } from "../../../protocol/index.ts";
import type { SocketPresence, Superseded } from "../../core/sessions.ts";
import { endSession, type Session, secondsWithin } from "./session.ts";
import type { ChannelStats } from "./stats.ts";

export interface DismissalDeps {
  readonly presence: Pick<SocketPresence, "superseded" | "release">;
  readonly stats: ChannelStats;
  readonly onError: (error: unknown) => void;
}

/** Its presence is this node's to keep, also while the node sends it elsewhere. */
export const isHeld = ({ phase }: Session): boolean => phase === "ready" || phase === "draining";

const PING_PONG_TIMES = 3;

/** The wait for the session that is pushed out: long once two agents do nothing but that. Undefined leaves it to the close. */
export const pushedOutWait = (times: number): number | undefined => (times < PING_PONG_TIMES ? undefined : secondsWithin(PING_PONG_WAIT_SEC));

export const createDismissal = ({ presence, stats, onError }: DismissalDeps) => {
  const dismiss = (session: Session, { why, pushedOut }: Superseded): void => {
    if (why === "removed") endSession(session, CLOSE.deviceRevoked);
    // Whoever is asked to move opens its next session in its own time and need not name this one.
    else if (why === "handedOver" || session.phase === "draining") endSession(session, CLOSE.normal);
    else endSession(session, CLOSE.superseded, pushedOutWait(pushedOut));
  };

  /** Closes those whose row has moved on. */
  const check = async (sessions: readonly Session[]): Promise<void> => {
    const gone = await presence.superseded(sessions);
    for (const session of sessions) {
      const found = gone.get(session.deviceId);
      if (found === undefined || !isHeld(session)) continue;
      if (session.phase === "ready") stats.staleEvictions += 1;
      dismiss(session, found);
    }
  };

  const settle = async (sessions: readonly Session[]): Promise<void> => {
    const kept = await presence.release(sessions);
    const others = sessions.filter(({ deviceId }) => !kept.has(deviceId));
    if (others.length > 0) await check(others);
  };

  const closeAll = async (sessions: readonly Session[], close: Close, waits?: ReadonlyMap<Session, number>): Promise<void> => {
    await settle(sessions).catch(onError);
    for (const session of sessions) {
      endSession(session, close, waits?.get(session));
      retiring.delete(session);
    }
  };

  const retiring = new Map<Session, Promise<void>>();
  /** Closes all of them, in this way unless the database knows better; `waits` are seconds. Each once, however often it is asked; resolves when all are closed. */
  const retire: typeof closeAll = async (sessions, ...how) => {
    const fresh = sessions.filter((session) => !retiring.has(session));
    const closed = fresh.length === 0 ? Promise.resolve() : closeAll(fresh, ...how);
    for (const session of fresh) retiring.set(session, closed);
    await Promise.all(sessions.map((session) => retiring.get(session)));
  };

  return { check, retire };
};
export type Dismissal = ReturnType<typeof createDismissal>;
