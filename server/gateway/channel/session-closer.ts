// The session closer chooses the close for sessions that may have lost their presence, and for those of suspended tenants.
// An eviction may be late or lost, and a superseded agent that is told to come back would push out its own newer session. So the closer asks the database
// first: does a newer session exist, and was this one handed over to it?

import { CLOSE, type Close, PING_PONG_WAIT_SEC, type TenantId } from "../../../protocol/index.ts";
import type { SocketPresence, Superseded } from "../../core/ports/agent-sessions.ts";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import type { TenantLookup } from "../../core/ports/lookups.ts";
import type { Blocks } from "../../core/ports/security.ts";
import { type AgentSession, endSession, holdsPresence, secondsWithin } from "./session.ts";

export interface SessionCloserDeps {
  readonly presence: Pick<SocketPresence, "superseded" | "release">;
  readonly tenants: Pick<TenantLookup, "suspended">;
  readonly stats: ChannelStats;
  readonly onError: (error: unknown) => void;
}

const PING_PONG_TIMES = 3;

/** A long wait once two agents keep pushing each other out; undefined means the close's usual wait. */
export const pushedOutWait = (times: number): number | undefined => (times < PING_PONG_TIMES ? undefined : secondsWithin(PING_PONG_WAIT_SEC));

export const isSessionBlocked = ({ tenantId, deviceId, ip }: AgentSession, blocks: Pick<Blocks, "refuses">): boolean =>
  blocks.refuses({ tenantId, ip, principal: { kind: "agent", deviceId } });

/** Ends the sessions of blocked devices and addresses. Their agents stop, and ask over REST until they are welcome again. */
export const endBlocked = (open: ReadonlySet<AgentSession>, blocks: Pick<Blocks, "refuses">): void => {
  for (const session of open) if (isSessionBlocked(session, blocks)) endSession(session, CLOSE.authFailed);
};

export const createSessionCloser = ({ presence, tenants, stats, onError }: SessionCloserDeps) => {
  const end = (session: AgentSession, { why, pushedOut }: Superseded): void => {
    if (why === "removed") endSession(session, CLOSE.deviceRevoked);
    // A drained agent opens its next session whenever it likes and need not name this one as the one it continues.
    else if (why === "handedOver" || session.phase === "draining") endSession(session, CLOSE.normal);
    else endSession(session, CLOSE.superseded, pushedOutWait(pushedOut));
  };

  const closeSuperseded = async (sessions: readonly AgentSession[]): Promise<void> => {
    const gone = await presence.superseded(sessions);
    for (const session of sessions) {
      const found = gone.get(session.deviceId);
      if (found === undefined || !holdsPresence(session)) continue;
      if (session.phase === "ready") stats.staleEvictions += 1;
      end(session, found);
    }
  };

  const releasePresence = async (sessions: readonly AgentSession[]): Promise<void> => {
    const kept = await presence.release(sessions);
    const others = sessions.filter(({ deviceId }) => !kept.has(deviceId));
    if (others.length > 0) await closeSuperseded(others);
  };

  const retiring = new Map<AgentSession, Promise<void>>();
  const closeAll = async (sessions: readonly AgentSession[], close: Close, waits?: ReadonlyMap<AgentSession, number>): Promise<void> => {
    await releasePresence(sessions).catch(onError);
    for (const session of sessions) {
      endSession(session, close, waits?.get(session));
      retiring.delete(session);
    }
  };

  let readingTenants = false;
  const endSuspended = async (open: ReadonlySet<AgentSession>): Promise<void> => {
    const present = new Set<TenantId>();
    for (const { tenantId } of open) present.add(tenantId);
    const suspended = await tenants.suspended([...present]);
    if (suspended.size === 0) return;
    for (const session of open) if (suspended.has(session.tenantId)) endSession(session, CLOSE.tenantSuspended);
  };

  return {
    /** Closes the sessions whose row in the database names a newer one. */
    closeSuperseded,
    /**
     * Closes all of them with this close, unless the database has a better reason; `waits` are seconds. A session that is already being closed is only
     * waited for. Resolves when all are closed.
     */
    retire: async (sessions: readonly AgentSession[], close: Close, waits?: ReadonlyMap<AgentSession, number>): Promise<void> => {
      const fresh = sessions.filter((session) => !retiring.has(session));
      const closed = fresh.length === 0 ? Promise.resolve() : closeAll(fresh, close, waits);
      for (const session of fresh) retiring.set(session, closed);
      await Promise.all(sessions.map((session) => retiring.get(session)));
    },
    /** Upgrades refuse suspended tenants; this closes the sockets that were open before the suspension. */
    closeSuspended: async (open: ReadonlySet<AgentSession>): Promise<void> => {
      if (readingTenants || open.size === 0) return;
      readingTenants = true;
      await endSuspended(open)
        .catch(onError)
        .finally(() => {
          readingTenants = false;
        });
    },
  };
};
export type SessionCloser = ReturnType<typeof createSessionCloser>;
