// The places in the rail, in their order. A new screen adds its line.
import type { LinkProps } from "@tanstack/react-router";

export interface Place {
  readonly to: NonNullable<LinkProps["to"]>;
  readonly word: string;
  /** After `g`. */
  readonly key?: string;
  /** The permission to read what it shows. */
  readonly needs?: string;
}

export const PLACES = [
  { to: "/", word: "Overview", key: "o", needs: "device:read" },
  { to: "/devices", word: "Devices", key: "d", needs: "device:read" },
  { to: "/fleets", word: "Fleets", key: "f", needs: "fleet:read" },
  { to: "/commands", word: "Commands", key: "c", needs: "command:read" },
  { to: "/catalogue", word: "Catalogue", key: "i", needs: "app:read" },
  { to: "/apps", word: "Apps", key: "r", needs: "app:read" },
  { to: "/deployments", word: "Deployments", key: "v", needs: "deployment:read" },
  { to: "/alerts", word: "Alerts", key: "l", needs: "alert:read" },
  { to: "/traces", word: "Traces", key: "t", needs: "trace:read" },
  { to: "/events", word: "Events", key: "e", needs: "event:read" },
  { to: "/pair", word: "Pair", key: "p", needs: "device:pair" },
  { to: "/members", word: "Members", key: "m", needs: "member:read" },
  { to: "/keys", word: "API keys", key: "k", needs: "api_key:read" },
  { to: "/webhooks", word: "Webhooks", key: "w", needs: "webhook:read" },
  { to: "/audit", word: "Audit log", key: "a", needs: "audit:read" },
  { to: "/security", word: "Security", key: "y", needs: "security:read" },
  { to: "/billing", word: "Usage and billing", key: "b", needs: "billing:read" },
  { to: "/settings", word: "Settings", key: "s", needs: "tenant:read" },
  { to: "/nodes", word: "Nodes", key: "n", needs: "administrator" },
  { to: "/account", word: "Account" },
] as const satisfies readonly Place[] as readonly Place[];

interface Visitor {
  readonly administrator: boolean;
  readonly permissions: readonly string[];
}
export const isOpenTo = ({ needs }: Place, { administrator, permissions }: Visitor): boolean =>
  needs === undefined || (needs === "administrator" ? administrator : permissions.includes(needs));
