// Columns of every list of apps.
import type { App } from "@mooring/client";
import type { Column } from "../ui/table.tsx";
import { AGO_WIDTH, Ago } from "../ui/time.tsx";
import { AppStatus } from "./app-status.tsx";

export const APP_NAME: Column<App> = { title: "Name", phone: true, cell: ({ name }) => <strong>{name}</strong> };
export const APP_STATUS: Column<App> = {
  title: "Status",
  width: "minmax(116px, 0.8fr)",
  phone: true,
  cell: ({ status, drift }) => (
    <span className="row">
      <AppStatus status={status} drift={drift} />
    </span>
  ),
};
export const APP_TYPE: Column<App> = { title: "Application", cell: ({ appType, templateVersion }) => `${appType} ${templateVersion}` };
export const APP_PORTS: Column<App> = { title: "Ports", width: "120px", cell: ({ reported }) => Object.values(reported?.ports ?? {}).join(", ") };
export const APP_CHANGED: Column<App> = { title: "Changed", width: AGO_WIDTH, cell: ({ updatedAt }) => <Ago at={updatedAt} /> };
