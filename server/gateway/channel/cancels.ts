// Asking agents to stop a command. One that cannot stop anything is not asked, and one that does not know the question says so:
// either way the command goes on, and whoever cancelled it is told at once instead of being told that it has ended.

import type { z } from "zod";
import type { CancelOrder } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { CommandDelivery } from "../../core/delivery.ts";
import { type Session, send } from "./session.ts";

export interface CancelsDeps {
  readonly clock: Clock;
  readonly delivery: Pick<CommandDelivery, "ack">;
  readonly onError: (error: unknown, session: Session) => void;
}

/** Questions whose answer may still come. */
const MAX_ASKED = 100;

export const createCancels = ({ clock, delivery, onError }: CancelsDeps) => {
  const reject = ({ tenantId, deviceId }: Session, commandId: string, code: string): Promise<unknown> =>
    delivery.ack({ tenantId, deviceId }, { commandId, status: "cancel_rejected", code });

  return {
    ask: (session: Session, order: z.output<typeof CancelOrder>): void => {
      if (!session.canStop) {
        void reject(session, order.commandId, "CANCEL_UNSUPPORTED").catch((error: unknown) => onError(error, session));
        return;
      }
      send(session, { op: "cancel", data: order }, clock);
      session.cancels ??= new Map();
      const { cancels } = session;
      const [oldest] = cancels.keys();
      if (cancels.size >= MAX_ASKED && oldest !== undefined) cancels.delete(oldest);
      cancels.set(`s${session.framesOut}`, order.commandId);
    },
    /** The agent does not know the op of this frame of ours. */
    unsupported: async (session: Session, ref: string): Promise<void> => {
      const commandId = session.cancels?.get(ref);
      if (commandId === undefined) return;
      session.cancels?.delete(ref);
      await reject(session, commandId, UNSUPPORTED_OP);
    },
  };
};
export type Cancels = ReturnType<typeof createCancels>;

/** How either side answers an op that it does not know. */
export const UNSUPPORTED_OP = "UNSUPPORTED_OP";
