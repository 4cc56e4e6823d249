// The commands about logs. Their lines go over REST, so that the gateway stores none in the results of commands.
import { z } from "zod";
import { type Agent, type CommandHandler, type CommandHandlers, HandlerFailure, InvalidPayload, type Time } from "../agent/index.ts";
import { type Host, HostFailure } from "./host.ts";
import { createLogSender, FollowPayload, TailPayload } from "./log-sender.ts";

export interface LogHandlers {
  readonly handlers: CommandHandlers;
  /** Ends what is being followed. */
  stop(): void;
}

const handlerOf = <S extends z.ZodType>(schema: S, run: (order: z.output<S>) => unknown): CommandHandler => ({
  long: false,
  cancelable: false,
  run: async (payload) => {
    const order = schema.safeParse(payload);
    if (!order.success) throw new InvalidPayload(z.prettifyError(order.error).slice(0, 500));
    try {
      return await run(order.data);
    } catch (error) {
      if (error instanceof HostFailure) throw new HandlerFailure(error.reason, { message: error.message.slice(0, 500) });
      throw error;
    }
  },
});

export const createLogHandlers = (options: {
  readonly host: Pick<Host, "tail" | "follow">;
  readonly call: Agent["call"];
  readonly time: Time;
}): LogHandlers => {
  const sender = createLogSender(options);
  return {
    handlers: { "app.logs": handlerOf(TailPayload, sender.sendTail), "app.logs.follow": handlerOf(FollowPayload, sender.follow) },
    stop: sender.stop,
  };
};
