// How a mesh route is and what it leads to, in words.
import type { MeshRoute } from "@mooring/client";

type Shown = Pick<MeshRoute, "approval" | "status">;
interface RouteState {
  /** One that has a tone. */
  readonly status: string;
  readonly word: string;
}

/** What matters most: nobody gets through a route that nobody approved. */
export const meshRouteState = ({ approval, status }: Shown): RouteState => {
  if (approval === "pending") return { status: "pending", word: "waits for approval" };
  if (approval === "rejected") return { status: "rejected", word: "rejected" };
  if (status === "disabled") return { status: "disabled", word: "off" };
  if (status === "down") return { status: "offline", word: "no router answers" };
  return status === "degraded" ? { status, word: "a router is missing" } : { status, word: "works" };
};

export const meshTargetText = ({ network, domains, host, port }: Pick<MeshRoute, "network" | "domains" | "host" | "port">): string =>
  network ?? (host === null ? domains.join(", ") : `${host}:${port}`);
