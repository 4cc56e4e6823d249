// The session registry of this node: every open socket, and by device the session whose hello was accepted. The session with the newest epoch wins.

import { CLOSE } from "../../../protocol/index.ts";
import { digestPart, type SessionBegun, type SessionOwners, type SessionRef } from "../../core/ports/agent-sessions.ts";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import type { CommandDelivery } from "../../core/ports/delivery.ts";
import type { Acks } from "./acks.ts";
import type { CommandPush } from "./command-push.ts";
import type { ClusterNotifier, LocalSessions } from "./device-notifier.ts";
import { type AgentSession, endSession, noteNews } from "./session.ts";
import { pushedOutWait } from "./session-closer.ts";
import { createSessionWheel, type SessionWheel } from "./session-wheel.ts";

export interface SessionRegistryDeps {
  readonly nodeId: string;
  readonly busy: Set<AgentSession>;
  readonly commands: CommandPush;
  readonly delivery: Pick<CommandDelivery, "writeSent">;
  readonly acks: Pick<Acks, "cancel">;
  readonly notifier: Pick<ClusterNotifier, "evictAt">;
  readonly owners: Pick<SessionOwners, "claim" | "release">;
  readonly stats: ChannelStats;
  readonly onError: (error: unknown) => void;
}

export interface SessionRegistry extends LocalSessions {
  readonly open: Set<AgentSession>;
  /** By device. */
  readonly ready: Map<string, AgentSession>;
  /** Sessions that every tick looks at: all but the quiet ones, which wait in the wheel. */
  readonly busy: Set<AgentSession>;
  readonly wheel: SessionWheel;
  /** Sessions that the next presence flush writes, each once; see `noteNews`. */
  readonly news: AgentSession[];
  /** The digest parts whose sessions are no longer those of the last comparison with the database. */
  readonly changed: Set<string>;
  /** Sessions whose sockets closed without a goodbye, until the next presence flush writes them. */
  readonly lost: SessionRef[];
  /** False when a newer session of the device is already registered, or the socket has closed. */
  register(session: AgentSession, begun: SessionBegun): boolean;
  remove(session: AgentSession): void;
}

export const createSessionRegistry = (deps: SessionRegistryDeps): SessionRegistry => {
  const { nodeId, busy, commands, delivery, acks, notifier, owners, stats, onError } = deps;
  const ready = new Map<string, AgentSession>();
  const open = new Set<AgentSession>();
  const wheel = createSessionWheel();
  const news: AgentSession[] = [];
  const changed = new Set<string>();
  const lost: SessionRef[] = [];

  const takeOver = (session: AgentSession, { previousNodeId, handedOver, pushedOut, epoch }: SessionBegun): void => {
    const { deviceId } = session;
    const close = handedOver ? CLOSE.normal : CLOSE.superseded;
    const old = ready.get(deviceId);
    ready.set(deviceId, session);
    const waitSeconds = handedOver ? undefined : pushedOutWait(pushedOut);
    if (old !== undefined) endSession(old, close, waitSeconds);
    else if (previousNodeId !== null && previousNodeId !== nodeId) notifier.evictAt(previousNodeId, deviceId, { close, epochBelow: epoch, waitSeconds });
  };

  return {
    open,
    ready,
    busy,
    wheel,
    news,
    changed,
    lost,
    register: (session, begun) => {
      const { deviceId } = session;
      session.epoch = begun.epoch;
      if (session.link === null || session.link.closed) {
        lost.push({ deviceId, epoch: begun.epoch });
        return false;
      }
      // If two hellos come at the same time, the database has decided which is newer.
      if ((ready.get(deviceId)?.epoch ?? 0) > begun.epoch) {
        endSession(session, CLOSE.superseded);
        return false;
      }
      takeOver(session, begun);
      session.phase = "ready";
      noteNews(session, news);
      changed.add(digestPart(deviceId));
      stats.ready = ready.size;
      void owners.claim(deviceId, nodeId, begun.epoch).catch(onError);
      return true;
    },
    remove: (session) => {
      const { deviceId } = session;
      open.delete(session);
      busy.delete(session);
      wheel.remove(session);
      session.probe?.settle(false);
      // A drained session keeps its presence: the agent is on its way to another node.
      if (session.phase === "ready") lost.push({ deviceId, epoch: session.epoch });
      session.phase = "closed";
      if (ready.get(deviceId) === session) {
        ready.delete(deviceId);
        delivery.writeSent(deviceId);
      }
      if (session.epoch > 0) changed.add(digestPart(deviceId));
      if (session.epoch > 0) void owners.release(deviceId, session.epoch).catch(onError);
      stats.ready = ready.size;
    },
    nudge: (deviceId) => {
      const session = ready.get(deviceId);
      if (session === undefined) return false;
      void commands.push(session);
      return true;
    },
    freed: (deviceId) => {
      const session = ready.get(deviceId);
      if (session === undefined) return false;
      // A running claim may have read too early, and its `left` is not known yet.
      if (session.left || session.pushing) void commands.push(session);
      return true;
    },
    takesNow: (deviceId, epoch) => {
      const session = ready.get(deviceId);
      return session !== undefined && commands.takesNow(session, epoch);
    },
    pushNow: (deviceId, command) => {
      const session = ready.get(deviceId);
      if (session !== undefined) commands.pushNow(session, command);
    },
    cancel: (deviceId, order) => {
      const session = ready.get(deviceId);
      if (session === undefined) return false;
      acks.cancel(session, order);
      return true;
    },
    evict: (deviceId, { close, epochBelow, waitSeconds }) => {
      const session = ready.get(deviceId);
      if (session === undefined) return false;
      if (epochBelow === undefined || session.epoch < epochBelow) endSession(session, close, waitSeconds);
      return true;
    },
  };
};
