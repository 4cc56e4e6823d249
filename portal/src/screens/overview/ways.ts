// The places to which lines of the overview lead.
import type { AttentionLine } from "@mooring/client";
import type { LinkProps } from "@tanstack/react-router";

type Way = Pick<LinkProps, "to" | "params" | "search">;
type Search = NonNullable<LinkProps["search"]>;
type Place = AttentionLine["action"]["place"];

const ONE: Readonly<Record<Place, (id: string) => Way>> = {
  alerts: (alertId) => ({ to: "/alerts/$alertId", params: { alertId } }),
  apps: (appId) => ({ to: "/apps/$appId", params: { appId } }),
  "backup-destinations": () => ({ to: "/backups/destinations" }),
  "backup-policies": (policyId) => ({ to: "/backups/policies/$policyId", params: { policyId } }),
  devices: (deviceId) => ({ to: "/devices/$deviceId", params: { deviceId } }),
  domains: (domainId) => ({ to: "/network/domains/$domainId", params: { domainId } }),
  rollouts: (rolloutId) => ({ to: "/rollouts/$rolloutId", params: { rolloutId } }),
  security: () => ({ to: "/security" }),
  webhooks: (webhookId) => ({ to: "/webhooks/$webhookId", params: { webhookId } }),
};
const ALL: Readonly<Record<Place, NonNullable<Way["to"]>>> = {
  alerts: "/alerts",
  apps: "/apps",
  "backup-destinations": "/backups/destinations",
  "backup-policies": "/backups/policies",
  devices: "/devices",
  domains: "/network/domains",
  rollouts: "/rollouts",
  security: "/security",
  webhooks: "/webhooks",
};

export const wayTo = ({ place, id, search }: AttentionLine["action"]): Way => {
  if (id !== null) return ONE[place](id);
  return { to: ALL[place], search: Object.fromEntries(new URLSearchParams(search)) as Search }; // as: each list reads what it knows of it
};
