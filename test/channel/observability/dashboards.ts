// Dashboards for Grafana over the metrics of all nodes, written to docs/observability. A panel is a title, a unit of Grafana's and an expression.
type Panel = readonly [title: string, unit: string, expression: string];

const rate = (metric: string, by: string): string => `sum by (${by}) (rate(mooring_${metric}[$__rate_interval]))`;
const quantile = (of: number, metric: string, by = "le"): string =>
  `histogram_quantile(${of}, sum by (${by}) (rate(mooring_${metric}_bucket[$__rate_interval])))`;

const DASHBOARDS: Readonly<Record<string, readonly Panel[]>> = {
  Fleet: [
    ["Sockets that are ready", "short", 'sum by (node) (mooring_agent_connections{state="ready"})'],
    ["Upgrades by result", "reqps", rate("agent_connects_total", "result, reason")],
    ["Closed sockets by code", "cps", rate("agent_closes_total", "code")],
    ["Round trip of heartbeats, 95th percentile", "s", quantile(0.95, "agent_heartbeat_rtt_seconds")],
    ["Clocks of agents, 95th percentile", "s", quantile(0.95, "agent_clock_offset_seconds")],
    ["From socket to ready, 95th percentile", "s", quantile(0.95, "agent_handshake_seconds")],
  ],
  Commands: [
    ["Open commands", "short", "max by (status) (mooring_commands_open)"],
    ["From due to sent, 99th percentile", "s", quantile(0.99, "command_delivery_seconds", "le, channel")],
    ["From sent to ack, 99th percentile", "s", quantile(0.99, "command_ack_seconds")],
    ["From due to result, 95th percentile", "s", quantile(0.95, "command_end_to_end_seconds")],
    ["Delivered again, by cause", "cps", rate("command_redeliveries_total", "cause")],
    ["Past their deadline", "short", "max(mooring_commands_past_deadline)"],
  ],
  HTTP: [
    ["Calls by transport and status", "reqps", rate("call_duration_seconds_count", "transport, status")],
    ["Time of calls, 95th percentile", "s", quantile(0.95, "call_duration_seconds", "le, transport")],
    [
      "The ten slowest operations, mean",
      "s",
      "topk(10, sum by (operation) (rate(mooring_call_duration_seconds_sum[$__rate_interval])) / sum by (operation) (rate(mooring_call_duration_seconds_count[$__rate_interval])))",
    ],
    ["Errors by code", "cps", rate("call_errors_total", "code")],
  ],
  Database: [
    ["Sessions", "short", "sum by (state) (mooring_db_pool_connections)"],
    ["Sessions and waiting calls by class of work", "short", "sum by (class, state) (mooring_db_class_sessions)"],
    ["Calls refused for their tenant's share", "short", "sum by (class) (mooring_db_share_refusals)"],
    ["Standbys behind", "bytes", "max by (standby, mode) (mooring_database_standby_lag_bytes)"],
  ],
  Webhooks: [
    ["Deliveries that wait", "short", "max(mooring_webhook_deliveries_waiting)"],
    ["Something due for", "s", "max(mooring_webhook_oldest_due_seconds)"],
    ["Webhooks that fail", "short", "max(mooring_webhooks_failing)"],
    ["Events not dispatched, and the oldest one's age", "short", "max(mooring_outbox_undispatched_events) or max(mooring_outbox_oldest_undispatched_seconds)"],
  ],
  Nodes: [
    ["Builds", "short", "count by (version, commit) (mooring_build_info)"],
    ["Clock against the database's", "s", "mooring_clock_offset_seconds"],
    ["Overloaded", "short", "mooring_node_overloaded"],
    ["Hints between nodes arrive", "short", "mooring_pubsub_healthy"],
    ["Resident memory", "bytes", "process_resident_memory_bytes"],
    ["Event loop late by, 99th percentile", "s", "nodejs_eventloop_lag_p99_seconds"],
  ],
};

const panelOf = ([title, unit, expr]: Panel, at: number) => ({
  id: at + 1,
  type: "timeseries",
  title,
  datasource: { type: "prometheus", uid: `\${datasource}` },
  gridPos: { h: 8, w: 12, x: (at % 2) * 12, y: Math.floor(at / 2) * 8 },
  fieldConfig: { defaults: { unit, min: unit === "s" ? undefined : 0 }, overrides: [] },
  targets: [{ refId: "A", expr, legendFormat: "__auto" }],
});

/** The files of docs/observability, by name. */
export const dashboardFiles = (): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(DASHBOARDS).map(([name, panels]) => {
      const model = {
        uid: `mooring-${name.toLowerCase()}`,
        title: `Mooring: ${name}`,
        tags: ["mooring"],
        schemaVersion: 39,
        version: 1,
        refresh: "30s",
        time: { from: "now-6h", to: "now" },
        timezone: "browser",
        templating: { list: [{ name: "datasource", type: "datasource", query: "prometheus", label: "Data source" }] },
        annotations: { list: [] },
        panels: panels.map(panelOf),
      };
      return [`dashboard-${name.toLowerCase()}.json`, `${JSON.stringify(model, null, 2)}\n`];
    }),
  );

export const expressions = (): readonly string[] => Object.values(DASHBOARDS).flatMap((panels) => panels.map(([, , expression]) => expression));
