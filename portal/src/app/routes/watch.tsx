// The routes of what people watch: alerts, what happened, traces and costs.
import { createRoute, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { readAlertSearch } from "../../screens/alerts/search.ts";
import { readAuditSearch } from "../../screens/audit/search.ts";
import { readCostSearch } from "../../screens/cost/search.ts";
import { readEventSearch } from "../../screens/events/search.ts";
import { readOneTraceSearch, readTraceSearch } from "../../screens/traces/search.ts";
import { root } from "./root.tsx";

const alerts = createRoute({
  getParentRoute: () => root,
  path: "/alerts",
  validateSearch: readAlertSearch,
  component: lazyRouteComponent(() => import("../../screens/alerts/alerts.tsx"), "AlertsScreen"),
});
const alert = createRoute({
  getParentRoute: () => root,
  path: "/alerts/$alertId",
  beforeLoad: ({ params: { alertId } }) => {
    throw redirect({ to: "/alerts", search: { open: alertId }, replace: true });
  },
});
const events = createRoute({
  getParentRoute: () => root,
  path: "/events",
  validateSearch: readEventSearch,
  component: lazyRouteComponent(() => import("../../screens/events/events.tsx"), "EventsScreen"),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: lazyRouteComponent(() => import("../../screens/audit/audit.tsx"), "AuditScreen"),
});
const traces = createRoute({
  getParentRoute: () => root,
  path: "/traces",
  validateSearch: readTraceSearch,
  component: lazyRouteComponent(() => import("../../screens/traces/traces.tsx"), "TracesScreen"),
});
const trace = createRoute({
  getParentRoute: () => root,
  path: "/traces/$traceId",
  validateSearch: readOneTraceSearch,
  component: lazyRouteComponent(() => import("../../screens/traces/trace.tsx"), "TraceScreen"),
});
const cost = createRoute({
  getParentRoute: () => root,
  path: "/cost",
  validateSearch: readCostSearch,
  component: lazyRouteComponent(() => import("../../screens/cost/cost.tsx"), "CostScreen"),
});

export const watchRoutes = [alerts, alert, events, audit, traces, trace, cost] as const;
