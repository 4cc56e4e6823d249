// What other parts of the system ask of a socket on this node: look for commands, cancel one, leave, say whether it lives.
import { CLOSE } from "../../../protocol/index.ts";
import type { Cancels } from "./cancels.ts";
import type { ChannelMessage } from "./courier.ts";
import type { Pump } from "./pump.ts";
import type { Rivals } from "./rivals.ts";
import { endSession, type Session } from "./session.ts";

export interface RemoteDeps {
  readonly ready: ReadonlyMap<string, Session>;
  readonly rivals: Pick<Rivals, "receive">;
  readonly pump: Pump;
  readonly cancels: Pick<Cancels, "ask">;
}

export const createRemote = ({ ready, rivals, pump, cancels }: RemoteDeps) => {
  const nudge = (deviceId: string): void => {
    const session = ready.get(deviceId);
    if (session !== undefined) void pump(session);
  };
  // A claim that is under way may have looked too early, and does not know yet what it leaves.
  const freed = (deviceId: string): void => {
    const session = ready.get(deviceId);
    if (session !== undefined && (session.left || session.pumping)) void pump(session);
  };
  const evict = (session: Session, { code, epochBelow, waitSeconds }: ChannelMessage): void => {
    const close = Object.values(CLOSE).find((known) => known.code === code);
    if (close !== undefined && (typeof epochBelow !== "number" || session.epoch < epochBelow))
      endSession(session, close, typeof waitSeconds === "number" ? waitSeconds : undefined);
  };
  const cancel = (session: Session, { commandId, deadline, reason }: ChannelMessage): void => {
    if (typeof commandId !== "string" || typeof deadline !== "string") return;
    cancels.ask(session, { commandId, deadline, ...(typeof reason === "string" ? { reason } : {}) });
  };
  return (message: ChannelMessage): void => {
    const { op, deviceId, deviceIds } = message;
    rivals.receive(message);
    if (op === "nudge" && typeof deviceIds === "string") deviceIds.split(",").forEach(nudge);
    if (op === "freed" && typeof deviceIds === "string") deviceIds.split(",").forEach(freed);
    const session = typeof deviceId === "string" ? ready.get(deviceId) : undefined;
    if (session === undefined) return;
    if (op === "evict") evict(session, message);
    if (op === "cancel") cancel(session, message);
  };
};
