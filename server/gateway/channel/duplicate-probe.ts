// Duplicate identity: before a hello or a poll takes over, the older session of the same device gets a ping, on this node or on the node that holds it.
// Only an answer keeps the newcomer out. Silence, a lost message, a hung node or an unreachable bus let it in, after `probeMs` at the latest.
import type { Hello } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import type { AgentSessions, DuplicateProbe } from "../../core/ports/agent-sessions.ts";
import type { CommandDelivery, DeviceRef } from "../../core/ports/delivery.ts";
import type { BusMessage, PubSub } from "../../core/ports/pub-sub.ts";
import { nodeChannel } from "./device-notifier.ts";
import type { AgentSession } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";

export interface DuplicateProbesDeps {
  readonly nodeId: string;
  readonly bus: Pick<PubSub, "publish" | "healthy">;
  readonly sessions: Pick<AgentSessions, "holder">;
  readonly delivery: Pick<CommandDelivery, "writeSent">;
  /** This node's sessions by device. */
  readonly ready: ReadonlyMap<string, AgentSession>;
  readonly clock: Clock;
  readonly settings: Pick<ChannelSettings, "heartbeatSeconds" | "probeMs" | "probesAtOnce">;
  readonly onError: (error: unknown) => void;
}

export interface DuplicateProbes {
  /** True when an older session of another process has just answered. Takes one read of the database, and `probeMs` at most. */
  isDuplicate(session: AgentSession, hello: Pick<Hello, "instanceId">): Promise<boolean>;
  /** The same for a process that polls and has no session. */
  readonly probe: DuplicateProbe;
  /** Handles the questions and answers of other nodes; ignores any other message. */
  receive(message: BusMessage): void;
}

const ASK = "live?";
const ANSWER = "live";

/** All probes that wait at the same time share one ping. A pong, the socket's close or the time limit settles it. */
const ping = (session: AgentSession, waitMs: number): Promise<boolean> => {
  if (session.probe !== null) return session.probe.answer;
  let settle = (_alive: boolean): void => undefined;
  const answer = new Promise<boolean>((resolve) => {
    settle = (alive) => {
      clearTimeout(timer);
      session.probe = null;
      resolve(alive);
    };
  });
  const timer = setTimeout(() => settle(false), waitMs);
  session.probe = { answer, settle };
  session.link?.ping();
  return answer;
};

export const createDuplicateProbes = ({ nodeId, bus, sessions, delivery, ready, clock, settings, onError }: DuplicateProbesDeps): DuplicateProbes => {
  const heartbeatMs = settings.heartbeatSeconds * 1_000;
  const asked = new Map<string, (alive: boolean) => void>();

  /** A session that has missed a heartbeat counts as dead without a ping. */
  const answers = async (session: AgentSession): Promise<boolean> =>
    session.phase === "ready" && clock.elapsed() - session.lastSeenAt < session.heartbeatSeconds * 1_000 && ping(session, settings.probeMs);

  const askNode = (owner: string, deviceId: string): Promise<boolean> => {
    if (asked.size >= settings.probesAtOnce) return Promise.resolve(false);
    return new Promise((resolve) => {
      const request = newId("req");
      const done = (alive: boolean): void => {
        clearTimeout(timer);
        asked.delete(request);
        resolve(alive);
      };
      const failed = (error: unknown): void => {
        onError(error);
        done(false);
      };
      const timer = setTimeout(done, settings.probeMs, false);
      asked.set(request, done);
      // A node that does not listen has no sockets either.
      void bus.publish(nodeChannel(owner), { op: ASK, deviceId, request, from: nodeId }).then((heard) => heard || done(false), failed);
    });
  };

  const answersElsewhere = async ({ tenantId, deviceId }: DeviceRef, instanceId: string): Promise<boolean> => {
    if (!bus.healthy()) return false;
    const holder = await sessions.holder({ tenantId, deviceId });
    if (holder === null || holder.nodeId === nodeId) return false;
    if (holder.instanceId === null || holder.instanceId === instanceId) return false;
    // The row lags by up to one presence flush, hence twice the interval.
    return holder.seenAgoMs < 2 * heartbeatMs && askNode(holder.nodeId, deviceId);
  };

  const olderAnswers = async (device: DeviceRef, instanceId: string, own: AgentSession | null): Promise<boolean> => {
    const old = ready.get(device.deviceId);
    if (old === undefined || old === own) return answersElsewhere(device, instanceId);
    return old.instanceId !== null && old.instanceId !== instanceId && answers(old);
  };

  return {
    isDuplicate: async (session, { instanceId }) => instanceId !== undefined && olderAnswers(session, instanceId, session),
    probe: (device, instanceId) => olderAnswers(device, instanceId, null),
    receive: ({ op, deviceId, request, from, alive }) => {
      if (typeof request !== "string") return;
      if (op === ANSWER) asked.get(request)?.(alive === true);
      if (op !== ASK || typeof deviceId !== "string" || typeof from !== "string") return;
      // If the newcomer gets in, its first claim tells which commands were sent before.
      delivery.writeSent(deviceId);
      const old = ready.get(deviceId);
      const asking = old === undefined ? Promise.resolve(false) : answers(old);
      void asking.then((found) => bus.publish(nodeChannel(from), { op: ANSWER, request, alive: found })).catch(onError);
    },
  };
};
