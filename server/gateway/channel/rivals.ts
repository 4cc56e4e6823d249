// Whether another agent lives with the identity of one that says hello or polls: the older session is asked by ping, here or on the node that holds it.
// Only an answer keeps the newcomer out. Silence, a lost message, a node that hangs or a bus that is away all let it in, after the bound at the latest.
import type { Hello } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { DeviceRef } from "../../core/delivery.ts";
import { newId } from "../../core/ids.ts";
import type { DuplicateProbe, Sessions } from "../../core/sessions.ts";
import { type ChannelBus, type ChannelMessage, nodeChannel } from "./courier.ts";
import type { Session } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";

export interface RivalsDeps {
  readonly nodeId: string;
  readonly bus: Pick<ChannelBus, "publish" | "healthy">;
  readonly sessions: Pick<Sessions, "holder">;
  /** By device, the sessions of this node. */
  readonly ready: ReadonlyMap<string, Session>;
  readonly clock: Clock;
  readonly settings: Pick<ChannelSettings, "heartbeatSeconds" | "probeMs" | "probesAtOnce">;
  readonly onError: (error: unknown) => void;
}

export interface Rivals {
  /** True when an older session of another process has just answered. Takes `probeMs` at most, besides one look into the database. */
  lives(session: Session, hello: Pick<Hello, "instanceId">): Promise<boolean>;
  /** The same for a process that has no session of its own. */
  readonly probe: DuplicateProbe;
  /** What other nodes ask and answer; any other message is passed over. */
  receive(message: ChannelMessage): void;
}

const ASK = "live?";
const ANSWER = "live";

/** One ping for all who want to know meanwhile. A pong, the socket's end or the bound settles it. */
const ping = (session: Session, waitMs: number): Promise<boolean> => {
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

export const createRivals = ({ nodeId, bus, sessions, ready, clock, settings, onError }: RivalsDeps): Rivals => {
  const heartbeatMs = settings.heartbeatSeconds * 1_000;
  const asked = new Map<string, (alive: boolean) => void>();

  /** A session that was silent for a whole beat is not worth the wait. */
  const answers = async (session: Session): Promise<boolean> =>
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
      // A node that nobody hears of any more holds no socket either.
      void bus.publish(nodeChannel(owner), { op: ASK, deviceId, request, from: nodeId }).then((heard) => heard || done(false), failed);
    });
  };

  const livesElsewhere = async ({ tenantId, deviceId }: DeviceRef, instanceId: string): Promise<boolean> => {
    if (!bus.healthy()) return false;
    const holder = await sessions.holder({ tenantId, deviceId });
    if (holder === null || holder.nodeId === nodeId) return false;
    if (holder.instanceId === null || holder.instanceId === instanceId) return false;
    // The row is behind its node by a flush, so only what is long past is judged by it.
    return holder.seenAgoMs < 2 * heartbeatMs && askNode(holder.nodeId, deviceId);
  };

  const livesBeside = async (device: DeviceRef, instanceId: string, own: Session | null): Promise<boolean> => {
    const old = ready.get(device.deviceId);
    if (old === undefined || old === own) return livesElsewhere(device, instanceId);
    return old.instanceId !== null && old.instanceId !== instanceId && answers(old);
  };

  return {
    lives: async (session, { instanceId }) => instanceId !== undefined && livesBeside(session, instanceId, session),
    probe: (device, instanceId) => livesBeside(device, instanceId, null),
    receive: ({ op, deviceId, request, from, alive }) => {
      if (typeof request !== "string") return;
      if (op === ANSWER) asked.get(request)?.(alive === true);
      if (op !== ASK || typeof deviceId !== "string" || typeof from !== "string") return;
      const old = ready.get(deviceId);
      const asking = old === undefined ? Promise.resolve(false) : answers(old);
      void asking.then((found) => bus.publish(nodeChannel(from), { op: ANSWER, request, alive: found })).catch(onError);
    },
  };
};
