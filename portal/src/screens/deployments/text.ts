// The sentences of the list of deployments.
import type { Deployment } from "@mooring/client";
import { counted } from "../../ui/count.ts";

/** A deployment that is deleted is gone. */
const STATES: Readonly<Record<Exclude<Deployment["status"], "deleted">, 1>> = {
  pending: 1,
  queued: 1,
  deploying: 1,
  active: 1,
  failed: 1,
  updating: 1,
  rolling_back: 1,
  stopping: 1,
  stopped: 1,
  cancelling: 1,
  cancelled: 1,
  deleting: 1,
};
export const STATUSES = Object.keys(STATES) as readonly (keyof typeof STATES)[];
export const text = {
  title: "Deployments",
  filter: "Filter deployments",
  total: (count: number) => counted(count, "deployment"),
  none: "What you deploy to your devices appears here.",
  noMatch: "No deployment matches these filters.",
  catalogue: "Open the catalogue",
  group: "group of devices",
  revision: (revision: number, current: number | null) => (current === null || current === revision ? String(revision) : `${revision} (active: ${current})`),
} as const;
