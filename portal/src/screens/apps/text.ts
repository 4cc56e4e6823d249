// The sentences of the list of apps.
import type { App } from "@mooring/client";
import { counted } from "../../ui/count.ts";

/** An app that is removed is gone. */
const STATES: Readonly<Record<Exclude<App["status"], "removed">, 1>> = {
  pending: 1,
  installing: 1,
  starting: 1,
  stopping: 1,
  restarting: 1,
  updating: 1,
  rolling_back: 1,
  removing: 1,
  running: 1,
  stopped: 1,
  error: 1,
};
export const STATUSES = Object.keys(STATES) as readonly (keyof typeof STATES)[];
export const text = {
  title: "Apps",
  filter: "Filter apps",
  total: (count: number) => counted(count, "app"),
  none: "Applications that you install on your devices appear here.",
  noMatch: "No app matches these filters.",
  catalogue: "Open the catalogue",
  verbs: { restart: "Restart", start: "Start", stop: "Stop", update: "Update", remove: "Remove" },
  ask: (verb: "restart" | "start" | "stop" | "update" | "remove", count: number) => `${text.verbs[verb]} ${counted(count, "app")}?`,
  outcomes: {
    restart: "Each app stops and starts again. Devices that are offline do it when they are back.",
    start: "Apps that run already stay as they are.",
    stop: "Nobody reaches a stopped app until it is started again.",
    update: "Each app gets the newest version of its template. One that fails its health check goes back to the version before.",
    remove: "The apps go from their devices. It stops by itself when too many fail.",
  },
  keepVolumes: "Keep the data on the devices",
} as const;
