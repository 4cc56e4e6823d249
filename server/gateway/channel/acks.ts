// Acks and cancellations. The gateway keeps what an agent reports on a command, asks again for acks that never came, and asks agents to stop commands.
import type { z } from "zod";
import { type AckResult, type CancelOrder, isOpen, type SocketAck } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { isAppError } from "../../core/errors.ts";
import type { CommandDelivery } from "../../core/ports/delivery.ts";
import type { DamagedAck } from "./frames.ts";
import { type AgentSession, send } from "./session.ts";

export interface AcksDeps {
  readonly clock: Clock;
  readonly delivery: Pick<CommandDelivery, "ack">;
  /** The database has a passing trouble: the same ack may succeed a little later. */
  readonly isTemporary: (error: unknown) => boolean;
  readonly onError: (error: unknown, session: AgentSession) => void;
}

const MAX_UNACKNOWLEDGED = 200;
const MAX_RESEND = 50;
/** An agent that never answers does not have the command; the command's deadline takes care of it. */
const MAX_ASKED = 3;
const NOTHING: readonly string[] = [];

/** The command was written to the agent, or the agent named it in its hello. */
export const expectAck = (session: AgentSession, commandId: string, nowMs: number): void => {
  session.unacknowledged ??= new Map();
  const { unacknowledged } = session;
  if (unacknowledged.size < MAX_UNACKNOWLEDGED || unacknowledged.has(commandId)) unacknowledged.set(commandId, { sinceMs: nowMs, asked: 0 });
};

/** Unacknowledged commands that the agent does not list, unless they were sent so recently that they may still be on their way. */
export const missingAcks = (
  { unacknowledged }: AgentSession,
  listed: readonly string[],
  { nowMs, afterMs }: { readonly nowMs: number; readonly afterMs: number },
): readonly string[] => {
  if (unacknowledged === null || unacknowledged.size === 0) return NOTHING;
  const held = new Set(listed);
  const due = [...unacknowledged]
    .filter(([commandId, { sinceMs, asked }]) => !held.has(commandId) && nowMs - sinceMs >= afterMs && asked < MAX_ASKED)
    .slice(0, MAX_RESEND);
  for (const [commandId, { sinceMs, asked }] of due) unacknowledged.set(commandId, { sinceMs, asked: asked + 1 });
  return due.map(([commandId]) => commandId);
};

const acknowledged = ({ unacknowledged }: AgentSession, { commandId, status }: AckResult): void => {
  if (status === null || !isOpen(status)) unacknowledged?.delete(commandId);
};

/** Both sides answer an op that they do not know with this code. */
export const UNSUPPORTED_OP = "UNSUPPORTED_OP";
/** `cancel` frames per session that an answer can still refer to. */
const MAX_CANCELS = 100;

export const createAcks = ({ clock, delivery, isTemporary, onError }: AcksDeps) => {
  const keep = async (session: AgentSession, id: string, data: z.output<typeof SocketAck> | DamagedAck, refused: string | null): Promise<void> => {
    const { tenantId, deviceId } = session;
    // Resolves after the commit. If it rejects, the agent gets no ack_ok and sends its ack again.
    const result = await delivery.ack({ tenantId, deviceId }, data, refused);
    acknowledged(session, result);
    send(session, { op: "ack_ok", ref: id, data: result }, clock);
  };

  const rejectCancel = ({ tenantId, deviceId }: AgentSession, commandId: string, code: string): Promise<unknown> =>
    delivery.ack({ tenantId, deviceId }, { commandId, status: "cancel_rejected", code });

  return {
    /** If the database refuses the ack for good, its status alone is kept, so the agent does not send it forever. */
    ack: async (session: AgentSession, id: string, data: z.output<typeof SocketAck>): Promise<void> => {
      try {
        await keep(session, id, data, null);
      } catch (error) {
        if (isAppError(error) || isTemporary(error)) throw error;
        onError(error, session);
        const { commandId, status, output } = data;
        await keep(session, id, { commandId, status, outputTruncated: output !== undefined }, "INTERNAL_ERROR");
      }
    },
    /** The status of a damaged ack counts all the same. */
    damagedAck: (session: AgentSession, id: string, damaged: DamagedAck): Promise<void> => keep(session, id, damaged, "VALIDATION_FAILED"),
    /** An agent without `cancel.v1` is not asked: the command continues, and its canceller learns that at once. */
    cancel: (session: AgentSession, order: z.output<typeof CancelOrder>): void => {
      if (!session.canStop) {
        void rejectCancel(session, order.commandId, "CANCEL_UNSUPPORTED").catch((error: unknown) => onError(error, session));
        return;
      }
      send(session, { op: "cancel", data: order }, clock);
      session.cancels ??= new Map();
      const { cancels } = session;
      const [oldest] = cancels.keys();
      if (cancels.size >= MAX_CANCELS && oldest !== undefined) cancels.delete(oldest);
      cancels.set(`s${session.framesOut}`, order.commandId);
    },
    /** The agent does not know the op of our frame `ref`. If that was a `cancel`, the command continues. */
    unsupportedOp: async (session: AgentSession, ref: string): Promise<void> => {
      const commandId = session.cancels?.get(ref);
      if (commandId === undefined) return;
      session.cancels?.delete(ref);
      await rejectCancel(session, commandId, UNSUPPORTED_OP);
    },
  };
};
export type Acks = ReturnType<typeof createAcks>;
