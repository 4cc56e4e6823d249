// Pushes due commands to a ready session: claimed and committed first, written then. One loop per session; nudges that come meanwhile join it.
// How many claims run at once on a node is the queue's business: it batches them.

import type { Clock } from "../../core/clock.ts";
import type { CommandDelivery } from "../../core/delivery.ts";
import { expectWord } from "./awaited.ts";
import { canPush, type Session, send } from "./session.ts";
import type { ChannelStats } from "./stats.ts";

export interface PumpDeps {
  readonly delivery: Pick<CommandDelivery, "claim" | "delivered" | "refused">;
  readonly clock: Clock;
  readonly stats: ChannelStats;
  readonly onError: (error: unknown, session: Session) => void;
}

export const createPump = ({ delivery, clock, stats, onError }: PumpDeps) => {
  type Claimed = Awaited<ReturnType<CommandDelivery["claim"]>>["commands"];

  /** True when the socket took it. A slow one takes no more until it has drained. */
  const push = (session: Session, item: Claimed[number]): boolean => {
    const result = send(session, { op: "command", data: item }, clock);
    if (result === "buffered") session.paused = true;
    const taken = result === "sent" || result === "buffered";
    if (taken && item.command.requiresAck) expectWord(session, item.command.commandId, clock.elapsed());
    return taken;
  };

  const write = (session: Session, claimed: Claimed): { readonly done: string[]; readonly refused: string[] } => {
    const taken = new Set<Claimed[number]>();
    session.link?.cork(() => {
      for (const item of claimed) if (push(session, item)) taken.add(item);
    });
    stats.pushed += taken.size;
    stats.refusedWrites += claimed.length - taken.size;
    const ids = (items: readonly Claimed[number][]): string[] => items.map(({ command }) => command.commandId);
    return { done: ids([...taken].filter(({ command }) => !command.requiresAck)), refused: ids(claimed.filter((item) => !taken.has(item))) };
  };

  const round = async (session: Session): Promise<void> => {
    const { deviceId } = session;
    session.claimingSince = clock.elapsed();
    const { commands, left } = await delivery.claim({ deviceId, epoch: session.epoch, maxInFlight: session.maxInFlight });
    session.claimingSince = null;
    session.left = left;
    if (commands.length === 0) return;
    const { done, refused } = write(session, commands);
    if (refused.length > 0) await delivery.refused(deviceId, session.epoch, refused);
    if (done.length > 0) {
      await delivery.delivered(deviceId, session.epoch, done);
      // Commands without an ack gave their credit back at once.
      if (left) session.wanted = true;
    }
  };

  return async (session: Session): Promise<void> => {
    session.wanted = true;
    if (session.pumping) return;
    session.pumping = true;
    try {
      while (session.wanted && canPush(session)) {
        session.wanted = false;
        await round(session);
      }
    } catch (error) {
      // The hub's clock tries again: `wanted` stands.
      session.wanted = true;
      onError(error, session);
    } finally {
      session.pumping = false;
      session.claimingSince = null;
    }
  };
};
export type Pump = ReturnType<typeof createPump>;
