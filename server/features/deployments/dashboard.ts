// The dashboard of a deployment for Grafana, over the metrics that a gateway serves.
import type { DeploymentRow } from "./store/deployments.ts";

interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly expression: string;
}

const PANELS: readonly Panel[] = [
  { title: "Open commands", unit: "short", expression: "sum by (status) (mooring_commands_open)" },
  {
    title: "Seconds from order to result, 95th percentile",
    unit: "s",
    expression: "histogram_quantile(0.95, sum by (le) (rate(mooring_command_end_to_end_seconds_bucket[$interval])))",
  },
  { title: "Connected agents", unit: "short", expression: 'sum(mooring_agent_connections{state="ready"})' },
  { title: "Late results", unit: "short", expression: "sum(increase(mooring_command_late_results_total[$interval]))" },
];
const VARIABLES = [
  { name: "datasource", type: "datasource", query: "prometheus", label: "Data source" },
  { name: "interval", type: "interval", query: "1m,5m,15m,1h", label: "Interval", current: { text: "5m", value: "5m" } },
] as const;
const TIME = { from: "now-24h", to: "now" } as const;

export const uidOf = ({ deploymentId }: Pick<DeploymentRow, "deploymentId">): string => `mooring-${deploymentId.slice(4).toLowerCase()}`;

const panelModel = ({ title, unit, expression }: Panel, at: number) => ({
  id: at + 1,
  type: "timeseries",
  title,
  datasource: { type: "prometheus", uid: `\${datasource}` },
  gridPos: { h: 8, w: 12, x: (at % 2) * 12, y: Math.floor(at / 2) * 8 },
  fieldConfig: { defaults: { unit }, overrides: [] },
  targets: [{ refId: "A", expr: expression, legendFormat: "__auto" }],
});

export const describeDashboard = (row: DeploymentRow) => ({
  dashboardUid: uidOf(row),
  dashboardTitle: `Deployment ${row.name}`,
  dashboardTags: ["mooring", ...(row.template === null ? [] : [row.template])],
  timeRange: TIME,
  panelCount: PANELS.length,
  templateVariables: VARIABLES.length,
});

export const dashboardModel = (row: DeploymentRow): Record<string, unknown> => {
  const { dashboardUid: uid, dashboardTitle: title, dashboardTags: tags } = describeDashboard(row);
  return {
    uid,
    title,
    tags,
    time: TIME,
    timezone: "browser",
    schemaVersion: 39,
    version: row.version,
    refresh: "1m",
    editable: true,
    templating: { list: VARIABLES },
    annotations: { list: [] },
    panels: PANELS.map(panelModel),
  };
};
