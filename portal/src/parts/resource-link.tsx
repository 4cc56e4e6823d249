// An id that leads to the screen that shows it, where there is one that the person may see.
import { Link, type LinkProps } from "@tanstack/react-router";
import { useMay } from "../api/session.ts";
import { Copyable } from "../ui/parts.tsx";

interface Way {
  readonly prefix: string;
  readonly needs: string;
  readonly to: (id: string) => Pick<LinkProps, "to" | "params" | "search">;
}

const WAYS: readonly Way[] = [
  { prefix: "dev_", needs: "device:read", to: (deviceId) => ({ to: "/devices/$deviceId", params: { deviceId } }) },
  { prefix: "cmd_", needs: "command:read", to: (command) => ({ to: "/commands", search: { command } }) },
  { prefix: "app_", needs: "app:read", to: (appId) => ({ to: "/apps/$appId", params: { appId } }) },
  { prefix: "dep_", needs: "deployment:read", to: (deploymentId) => ({ to: "/deployments/$deploymentId", params: { deploymentId } }) },
  { prefix: "flt_", needs: "fleet:read", to: (fleetId) => ({ to: "/fleets/$fleetId", params: { fleetId } }) },
  { prefix: "wh_", needs: "webhook:read", to: (webhookId) => ({ to: "/webhooks/$webhookId", params: { webhookId } }) },
  { prefix: "key_", needs: "api_key:read", to: (key) => ({ to: "/keys", search: { key } }) },
  { prefix: "mem_", needs: "member:read", to: () => ({ to: "/members" }) },
];

export const ResourceLink = ({ id }: { readonly id: string }) => {
  const may = useMay();
  const way = WAYS.find(({ prefix, needs }) => id.startsWith(prefix) && may(needs));
  return way === undefined ? <Copyable text={id} /> : <Link {...way.to(id)}>{id}</Link>;
};
