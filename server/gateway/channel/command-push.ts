// Command push: claims due commands for a ready session and writes them to the socket while credit is left. Each session runs one push loop at a time;
// nudges that arrive meanwhile join it. The command queue batches the claims of a node. A command that stands alone comes from memory, without a claim.

import type { Clock } from "../../core/clock.ts";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import type { Claim, CommandDelivery } from "../../core/ports/delivery.ts";
import { expectAck } from "./acks.ts";
import { type AgentSession, canPush, send } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";

export interface CommandPushDeps {
  readonly delivery: Pick<CommandDelivery, "claim" | "delivered" | "refused">;
  readonly clock: Clock;
  readonly stats: ChannelStats;
  /** Gets the sessions that push, for the tick to look at. */
  readonly busy: Set<AgentSession>;
  readonly onError: (error: unknown, session: AgentSession) => void;
}

export const createCommandPush = ({ delivery, clock, stats, busy, onError }: CommandPushDeps) => {
  type Claimed = Claim["commands"];

  /** True when the socket took the frame. A socket whose buffer is full takes no more until it drains. */
  const writeOne = (session: AgentSession, item: Claimed[number]): boolean => {
    const result = send(session, { op: "command", data: item }, clock);
    if (result === "buffered") session.paused = true;
    const taken = result === "sent" || result === "buffered";
    if (taken && item.command.requiresAck) expectAck(session, item.command.commandId, clock.elapsed());
    return taken;
  };

  const write = (session: AgentSession, claimed: Claimed): { readonly done: string[]; readonly refused: string[] } => {
    const taken = new Set<Claimed[number]>();
    session.link?.cork(() => {
      for (const item of claimed) if (writeOne(session, item)) taken.add(item);
    });
    stats.pushed += taken.size;
    stats.refusedWrites += claimed.length - taken.size;
    const ids = (items: readonly Claimed[number][]): string[] => items.map(({ command }) => command.commandId);
    return { done: ids([...taken].filter(({ command }) => !command.requiresAck)), refused: ids(claimed.filter((item) => !taken.has(item))) };
  };

  const claimAndWrite = async (session: AgentSession): Promise<void> => {
    const { deviceId, epoch } = session;
    session.claimingSince = clock.elapsed();
    const { commands, left } = await delivery.claim({ deviceId, epoch, maxInFlight: session.maxInFlight });
    session.claimingSince = null;
    session.left = left;
    if (commands.length === 0) return;
    const { done, refused } = write(session, commands);
    if (refused.length > 0) await delivery.refused(session, epoch, refused);
    if (done.length > 0) {
      await delivery.delivered(session, epoch, done);
      // Commands without an ack free their credit at once.
      if (left) session.wanted = true;
    }
  };

  const push = async (session: AgentSession): Promise<void> => {
    busy.add(session);
    session.wanted = true;
    if (session.pushing) return;
    session.pushing = true;
    try {
      while (session.wanted && canPush(session)) {
        session.wanted = false;
        await claimAndWrite(session);
      }
    } catch (error) {
      // The next tick tries again.
      session.wanted = true;
      onError(error, session);
    } finally {
      session.pushing = false;
      session.claimingSince = null;
    }
  };

  // A claim that runs may have read the command, so it claims once more instead.
  const takesNow = (session: AgentSession, epoch: number): boolean =>
    !session.pushing && session.epoch === epoch && session.maxInFlight >= 1 && canPush(session);

  const pushNow = (session: AgentSession, command: Claimed[number]): void => {
    busy.add(session);
    const { refused } = write(session, [command]);
    if (refused.length > 0) void delivery.refused(session, session.epoch, refused).catch((error: unknown) => onError(error, session));
  };

  return { push, takesNow, pushNow };
};
export type CommandPush = ReturnType<typeof createCommandPush>;
export type PushCommands = CommandPush["push"];

/** Continues pushing once enough of the socket's buffer has drained. */
export const createResume =
  (push: PushCommands, settings: ChannelSettings) =>
  (session: AgentSession): void => {
    if (!session.paused || session.link === null || session.link.bufferedBytes() >= settings.resumeBytes) return;
    session.paused = false;
    void push(session);
  };
