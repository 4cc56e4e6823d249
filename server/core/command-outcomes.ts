// Commands that a feature orders, and how it learns of their end: a typed order, and one handler per command type.
import type { z } from "zod";
import type { CommandId, CommandStatus, CommandType, DeviceId, Group } from "../../protocol/index.ts";
import type { Tx } from "./database.ts";
import type { CommandOrder } from "./delivery.ts";
import type { SystemScope } from "./scope.ts";

export type UnsuccessfulStatus = Extract<CommandStatus, "delivered" | "failed" | "rejected" | "canceled" | "expired" | "timed_out" | "undeliverable">;

/** How a command ended. */
export type Outcome<C extends CommandType = CommandType> = {
  readonly scope: SystemScope;
  readonly commandId: CommandId;
  readonly deviceId: DeviceId;
  /** As it was ordered. */
  readonly payload: z.input<C["payload"]>;
  /** A result that came after the gateway had given the command up: it replaces the outcome of before. */
  readonly late: boolean;
} & (
  | { readonly kind: "succeeded"; readonly output: z.output<C["output"]> }
  /** The agent succeeded, but its output does not fit the type. */
  | { readonly kind: "invalid_output"; readonly output: unknown; readonly issues: readonly string[] }
  | { readonly kind: "unsuccessful"; readonly status: UnsuccessfulStatus; readonly code: string | null; readonly output: unknown }
);

/**
 * Runs in the transaction that ends the command, whichever way it ends. Once per end; again, with `late`, when a late result replaces it. It may also
 * be given a command that its feature does not know any more. What it writes commits with the end. If it throws, the command ends all the same, what
 * the handler wrote is undone, and it is called again later until it succeeds. It waits for nothing but `tx`.
 */
export type OutcomeHandler<C extends CommandType = CommandType> = (tx: Tx, outcome: Outcome<C>) => Promise<void>;

/** One handler per command type of the group. */
export type OutcomeHandlers<G extends Group> = { readonly [N in keyof G["commands"]]: OutcomeHandler<G["commands"][N]> };

export interface RegisteredOutcome {
  readonly command: CommandType;
  readonly handle: OutcomeHandler;
}

/** An order for `enqueue`, its payload checked by the compiler. */
export const orderOf = <C extends CommandType>(
  command: C,
  order: Omit<CommandOrder, "type" | "payload"> & { readonly payload: z.input<C["payload"]> },
): CommandOrder => ({
  ...order,
  type: command.type,
  payload: order.payload as NonNullable<CommandOrder["payload"]>,
});
