// The routes of what leads visitors in, and devices to each other.
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { readNetworkSearch } from "../../api/search.ts";
import { root } from "./root.tsx";

const tunnels = createRoute({
  getParentRoute: () => root,
  path: "/network",
  validateSearch: readNetworkSearch,
  component: lazyRouteComponent(() => import("../../screens/tunnels/tunnels.tsx"), "TunnelsScreen"),
});
const tunnel = createRoute({
  getParentRoute: () => root,
  path: "/network/tunnels/$tunnelId",
  component: lazyRouteComponent(() => import("../../screens/tunnels/tunnel.tsx"), "TunnelScreen"),
});
const meshRoutes = createRoute({
  getParentRoute: () => root,
  path: "/network/routes",
  validateSearch: readNetworkSearch,
  component: lazyRouteComponent(() => import("../../screens/mesh-routes/mesh-routes.tsx"), "MeshRoutesScreen"),
});
const meshRoute = createRoute({
  getParentRoute: () => root,
  path: "/network/routes/$routeId",
  component: lazyRouteComponent(() => import("../../screens/mesh-routes/mesh-route.tsx"), "MeshRouteScreen"),
});
const domains = createRoute({
  getParentRoute: () => root,
  path: "/network/domains",
  validateSearch: readNetworkSearch,
  component: lazyRouteComponent(() => import("../../screens/domains/domains.tsx"), "DomainsScreen"),
});
const domain = createRoute({
  getParentRoute: () => root,
  path: "/network/domains/$domainId",
  component: lazyRouteComponent(() => import("../../screens/domains/domain.tsx"), "DomainScreen"),
});
export const networkRoutes = [tunnels, tunnel, domains, domain, meshRoutes, meshRoute] as const;
