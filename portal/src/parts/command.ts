// A command as the console reads it, and the states in which it has not ended.
import type { CommandStatus } from "@mooring/client";
import type { inferOutput } from "@trpc/tanstack-react-query";
import type { api } from "../api/client.ts";

export type CommandTimeline = inferOutput<typeof api.commands.timeline>;

/** Every state, and whether it is open. */
const STATES: Readonly<Record<CommandStatus, boolean>> = {
  queued: true,
  sent: true,
  acknowledged: true,
  running: true,
  canceling: true,
  delivered: false,
  succeeded: false,
  failed: false,
  rejected: false,
  canceled: false,
  expired: false,
  timed_out: false,
  undeliverable: false,
};
export const STATUSES = Object.keys(STATES) as readonly CommandStatus[];

export const isOpen = (status: CommandStatus): boolean => STATES[status];
