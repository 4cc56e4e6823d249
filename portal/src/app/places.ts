// The places of the console: those in the rail, in their order, and those that stand as tabs in one of them. A new screen adds its line under a place.
import type { LinkProps } from "@tanstack/react-router";
import type { IconName } from "../ui/icon-names.ts";

type Address = NonNullable<LinkProps["to"]>;
export const GROUPS = ["start", "run", "change", "data", "watch"] as const;
export type Group = (typeof GROUPS)[number] | "foot" | "person";
export const GROUP_WORDS: Readonly<Partial<Record<Group, string>>> = { run: "Run", change: "Change", data: "Data and network", watch: "Watch" };

interface Common {
  readonly to: Address;
  readonly word: string;
  /** After `g`. */
  readonly key?: string;
  /** The permission to read what it shows. */
  readonly needs?: string;
}
/** An entry of the rail. */
interface Root extends Common {
  readonly group: Group;
  readonly icon: IconName;
  /** Its word among its tabs, if it has any. */
  readonly tab?: string;
}
/** A part of an entry, and a tab there unless a button leads to it. */
interface Part extends Common {
  readonly under: string;
  readonly byButton?: true;
}
export type Place = Root | Part;

export const PLACES = [
  { to: "/", word: "Overview", group: "start", icon: "overview", key: "o", needs: "device:read" },
  { to: "/devices", word: "Devices", group: "run", icon: "devices", key: "d", needs: "device:read" },
  { to: "/fleets", word: "Fleets", under: "/devices", key: "f", needs: "fleet:read" },
  { to: "/pair", word: "Pair", under: "/devices", byButton: true, key: "p", needs: "device:pair" },
  { to: "/apps", word: "Apps", group: "run", icon: "apps", key: "r", needs: "app:read" },
  { to: "/deployments", word: "History", under: "/apps", key: "v", needs: "deployment:read" },
  { to: "/catalogue", word: "Catalogue", group: "run", icon: "catalogue", key: "i", needs: "app:read" },
  { to: "/rollouts", word: "Rollouts", group: "change", icon: "rollouts", key: "u", needs: "rollout:read" },
  { to: "/rollouts/policies", word: "Policies", under: "/rollouts", needs: "fleet:read" },
  { to: "/commands", word: "Commands", group: "change", icon: "commands", key: "c", needs: "command:read" },
  { to: "/bulk", word: "Bulk jobs", under: "/commands", key: "j", needs: "bulk:read" },
  { to: "/backups", word: "Backups", group: "data", icon: "backups", key: "b", needs: "backup:read" },
  { to: "/backups/policies", word: "Policies", under: "/backups", needs: "backup_policy:read" },
  { to: "/backups/destinations", word: "Destinations", under: "/backups", needs: "backup_destination:read" },
  { to: "/backups/volumes", word: "Volumes", under: "/backups", needs: "volume:read" },
  { to: "/network", word: "Network", tab: "Tunnels", group: "data", icon: "network", key: "h", needs: "tunnel:read" },
  { to: "/network/domains", word: "Domains", under: "/network", needs: "domain:read" },
  { to: "/network/routes", word: "Mesh routes", under: "/network", needs: "mesh:read" },
  { to: "/alerts", word: "Alerts", group: "watch", icon: "alerts", key: "l", needs: "alert:read" },
  { to: "/events", word: "Activity", tab: "Events", group: "watch", icon: "activity", key: "e", needs: "event:read" },
  { to: "/audit", word: "Audit log", under: "/events", key: "a", needs: "audit:read" },
  { to: "/traces", word: "Traces", under: "/events", key: "t", needs: "trace:read" },
  { to: "/cost", word: "Cost", group: "watch", icon: "cost", key: "z", needs: "cost:read" },
  { to: "/settings", word: "Settings", tab: "General", group: "foot", icon: "settings", key: "s", needs: "tenant:read" },
  { to: "/members", word: "People", under: "/settings", key: "m", needs: "member:read" },
  { to: "/keys", word: "API keys", under: "/settings", key: "k", needs: "api_key:read" },
  { to: "/webhooks", word: "Webhooks", under: "/settings", key: "w", needs: "webhook:read" },
  { to: "/security", word: "Security", under: "/settings", key: "y", needs: "security:read" },
  { to: "/exports", word: "Data exports", under: "/settings", needs: "export:create" },
  { to: "/imports", word: "Imports", under: "/settings", needs: "import:write" },
  { to: "/billing", word: "Usage and limits", under: "/settings", needs: "billing:read" },
  { to: "/nodes", word: "Platform", group: "foot", icon: "platform", key: "n", needs: "administrator" },
  { to: "/account", word: "Account", group: "person", icon: "person" },
] as const satisfies readonly Place[] as readonly Place[];

interface Visitor {
  readonly administrator: boolean;
  readonly permissions: readonly string[];
}
export const isOpenTo = ({ needs }: Place, { administrator, permissions }: Visitor): boolean =>
  needs === undefined || (needs === "administrator" ? administrator : permissions.includes(needs));

export const isRoot = (place: Place): place is Root => "group" in place;
const isAt = (pathname: string, to: string): boolean => pathname === to || (to !== "/" && pathname.startsWith(`${to}/`));
/** The place that an address belongs to. */
export const placeAt = (pathname: string): Place | undefined => PLACES.filter(({ to }) => isAt(pathname, to)).toSorted((a, b) => b.to.length - a.to.length)[0];
export const rootOf = (place: Place): Root | undefined => (isRoot(place) ? place : PLACES.filter(isRoot).find(({ to }) => to === place.under));

export interface Tab {
  readonly to: Address;
  readonly word: string;
}
/** An entry of the rail, as one person has it. */
export interface Entry {
  readonly root: Address;
  /** Where it leads: to the first of its tabs that the person may see. */
  readonly to: Address;
  readonly word: string;
  readonly icon: IconName;
  readonly group: Group;
  readonly tabs: readonly Tab[];
}

/** The entries of the rail that this person may see something of. */
export const entriesFor = (visitor: Visitor): readonly Entry[] =>
  PLACES.filter(isRoot).flatMap((root) => {
    const parts = PLACES.filter((place) => !isRoot(place) && place.under === root.to && place.byButton !== true);
    const tabs = [root, ...parts]
      .filter((place) => isOpenTo(place, visitor))
      .map((place) => ({ to: place.to, word: isRoot(place) ? (place.tab ?? place.word) : place.word }));
    const [first] = tabs;
    return first === undefined ? [] : [{ root: root.to, to: first.to, word: root.word, icon: root.icon, group: root.group, tabs }];
  });

/** The entry that an address belongs to. */
export const entryAt = (entries: readonly Entry[], pathname: string): Entry | undefined => {
  const place = placeAt(pathname);
  const root = place === undefined ? undefined : rootOf(place);
  return entries.find((entry) => entry.root === root?.to);
};
