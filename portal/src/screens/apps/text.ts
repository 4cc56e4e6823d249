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
} as const;
