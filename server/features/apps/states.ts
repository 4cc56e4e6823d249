// The states of an app and the changes between them. A change that is not listed here does not happen.
import type { AppStatus } from "../../../protocol/index.ts";
import { createStateMachine } from "../../core/structures/state-machine.ts";

const NEXT: Readonly<Record<AppStatus, readonly AppStatus[]>> = {
  pending: ["installing", "error", "removing"],
  installing: ["running", "error", "removing"],
  starting: ["running", "error", "removing"],
  stopping: ["stopped", "error", "removing"],
  restarting: ["running", "error", "removing"],
  updating: ["running", "error", "rolling_back", "removing"],
  rolling_back: ["running", "error", "removing"],
  running: ["stopping", "restarting", "updating", "rolling_back", "removing", "error"],
  stopped: ["starting", "updating", "removing"],
  // It runs again, or has stopped, by its agent's word.
  error: ["starting", "stopping", "updating", "rolling_back", "removing", "running", "stopped"],
  removing: ["removed", "error"],
  removed: [],
};

export const APP_TARGET = {
  began: "installing",
  start: "starting",
  stop: "stopping",
  restart: "restarting",
  update: "updating",
  rollBack: "rolling_back",
  remove: "removing",
  ran: "running",
  stopped: "stopped",
  failed: "error",
  removed: "removed",
} as const satisfies Readonly<Record<string, AppStatus>>;
export type AppEvent = keyof typeof APP_TARGET;

export const { move: moveApp, can: canMoveApp } = createStateMachine<AppStatus, AppEvent>(NEXT, APP_TARGET);

const OPEN: ReadonlySet<string> = new Set<AppStatus>(["pending", "installing", "starting", "stopping", "restarting", "updating", "rolling_back", "removing"]);
/** A command is open that will move it on. */
export const isInTransition = (status: string): boolean => OPEN.has(status);
