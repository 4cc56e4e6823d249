// Commands that a feature orders: a typed order, and one handler per command type for the outcome.
import type { z } from "zod";
import type { CommandId, CommandStatus, CommandType, DeviceId, Group } from "../../../protocol/index.ts";
import type { Tx } from "../database.ts";
import type { SystemScope } from "../scope.ts";
import type { CommandOrder } from "./delivery.ts";

export type UnsuccessfulStatus = Extract<CommandStatus, "delivered" | "failed" | "rejected" | "canceled" | "expired" | "timed_out" | "undeliverable">;

/** How a command ended. */
export type Outcome<C extends CommandType = CommandType> = {
  readonly scope: SystemScope;
  readonly commandId: CommandId;
  readonly deviceId: DeviceId;
  /** As it was ordered. */
  readonly payload: z.input<C["payload"]>;
  /** The result came after the gateway had given the command up, and replaces the earlier outcome. */
  readonly late: boolean;
} & (
  | { readonly kind: "succeeded"; readonly output: z.output<C["output"]> }
  /** The agent succeeded, but its output does not fit the type. */
  | { readonly kind: "invalid_output"; readonly output: unknown; readonly issues: readonly string[] }
  | { readonly kind: "unsuccessful"; readonly status: UnsuccessfulStatus; readonly code: string | null; readonly output: unknown }
);

/**
 * Runs in the transaction that ends the command, whichever way it ends. Once per end; again, with `late`, when a late result replaces it. The
 * command may be one that its feature has deleted. The handler's writes commit with the end. If it throws, the command ends all the same, its writes
 * are undone, and a job calls it again until it succeeds. It must wait for nothing but `tx`.
 */
export type OutcomeHandler<C extends CommandType = CommandType> = (tx: Tx, outcome: Outcome<C>) => Promise<void>;

/** One handler per command type of the group. */
export type OutcomeHandlers<G extends Group> = { readonly [N in keyof G["commands"]]: OutcomeHandler<G["commands"][N]> };

/** Hides secrets in what an agent says of a command, before it is stored. */
export interface Hide {
  text(text: string): string;
  /** A machine's word for a failure; the known ones stay. */
  code(code: string): string;
  /** `isCut`: it was too long, and only its beginning is left. */
  output(output: unknown, isCut: boolean): unknown;
}

/** Null if there is nothing to hide. */
export type HideFor = (tx: Tx, order: { readonly scope: SystemScope; readonly payload: unknown }) => Promise<Hide | null>;

/** What an agent says of a command that it works on. */
export interface CommandNews {
  readonly scope: SystemScope;
  readonly commandId: CommandId;
  readonly deviceId: DeviceId;
  readonly percent: number | null;
  readonly stage: string | null;
  readonly bytesDone: number | null;
  readonly bytesTotal: number | null;
}
/** Runs in the transaction of the ack. Unlike an outcome it gets lost if it throws, and the next one makes up for it. */
export type ProgressHandler = (tx: Tx, progress: CommandNews) => Promise<void>;

export interface RegisteredOutcome {
  readonly progress?: ProgressHandler | undefined;
  readonly command: CommandType;
  readonly handle: OutcomeHandler;
  readonly hideFor?: HideFor | undefined;
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
