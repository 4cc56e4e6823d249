// A command as the console reads it, and the states in which it has not ended.
import type { CommandStatus } from "@mooring/client";
import type { inferOutput } from "@trpc/tanstack-react-query";
import type { api } from "../api/client.ts";

export type CommandTimeline = inferOutput<typeof api.commands.timeline>;

export const OPEN_STATUSES = ["queued", "sent", "acknowledged", "running", "canceling"] as const satisfies readonly CommandStatus[];
export const ENDED_STATUSES = [
  "delivered",
  "succeeded",
  "failed",
  "rejected",
  "canceled",
  "expired",
  "timed_out",
  "undeliverable",
] as const satisfies readonly CommandStatus[];

export const isOpen = (status: CommandStatus): boolean => OPEN_STATUSES.some((each) => each === status);
