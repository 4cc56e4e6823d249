// Who is connected here: a session enters with a good hello, the newest epoch wins, and who leaves is written down.
import { CLOSE } from "../../../protocol/index.ts";
import type { SessionOwnerDirectory } from "../../core/session-owner-directory.ts";
import type { SessionBegun, SessionRef } from "../../core/sessions.ts";
import type { AgentCourier } from "./courier.ts";
import { pushedOutWait } from "./dismissal.ts";
import { endSession, type Session } from "./session.ts";
import type { ChannelStats } from "./stats.ts";

export interface RosterDeps {
  readonly nodeId: string;
  readonly courier: Pick<AgentCourier, "evictAt">;
  readonly owners: Pick<SessionOwnerDirectory, "claim" | "release">;
  readonly stats: ChannelStats;
  readonly onError: (error: unknown) => void;
}

export interface Roster {
  /** Every open socket. */
  readonly all: Set<Session>;
  /** By device, those whose hello was good. */
  readonly ready: Map<string, Session>;
  /** Sockets that were lost without a word and not yet told to presence. */
  readonly lost: SessionRef[];
  /** False when a newer session stands there already or the socket is gone. */
  enter(session: Session, begun: SessionBegun): boolean;
  leave(session: Session): void;
}

export const createRoster = ({ nodeId, courier, owners, stats, onError }: RosterDeps): Roster => {
  const ready = new Map<string, Session>();
  const lost: SessionRef[] = [];

  const takeOver = (session: Session, { previousNodeId, handedOver, pushedOut, epoch }: SessionBegun): void => {
    const { deviceId } = session;
    const close = handedOver ? CLOSE.normal : CLOSE.superseded;
    const old = ready.get(deviceId);
    ready.set(deviceId, session);
    const waitSeconds = handedOver ? undefined : pushedOutWait(pushedOut);
    if (old !== undefined) endSession(old, close, waitSeconds);
    else if (previousNodeId !== null && previousNodeId !== nodeId) courier.evictAt(previousNodeId, deviceId, { close, epochBelow: epoch, waitSeconds });
  };

  return {
    all: new Set(),
    ready,
    lost,
    enter: (session, begun) => {
      const { deviceId } = session;
      session.epoch = begun.epoch;
      if (session.link === null || session.link.closed) {
        lost.push({ deviceId, epoch: begun.epoch });
        return false;
      }
      // Two hellos at once: the database has put them in order.
      if ((ready.get(deviceId)?.epoch ?? 0) > begun.epoch) {
        endSession(session, CLOSE.superseded);
        return false;
      }
      takeOver(session, begun);
      session.phase = "ready";
      stats.ready = ready.size;
      void owners.claim(deviceId, nodeId, begun.epoch).catch(onError);
      return true;
    },
    leave: (session) => {
      const { deviceId } = session;
      session.probe?.settle(false);
      // While draining presence stays as it is: the agent is on its way to another node.
      if (session.phase === "ready") lost.push({ deviceId, epoch: session.epoch });
      session.phase = "closed";
      if (ready.get(deviceId) === session) ready.delete(deviceId);
      if (session.epoch > 0) void owners.release(deviceId, session.epoch).catch(onError);
      stats.ready = ready.size;
    },
  };
};
