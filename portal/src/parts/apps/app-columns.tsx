// Columns of every list of apps.
import type { AppDetails } from "@mooring/client";
import { AppTile } from "../../ui/app-tile.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { AppStatus } from "./app-status.tsx";

export const APP_NAME: Column<AppDetails> = {
  title: "Name",
  phone: true,
  cell: ({ name, icon, hue }) => (
    <>
      <AppTile icon={icon} hue={hue} size="small" /> <strong>{name}</strong>
    </>
  ),
};
export const APP_STATUS: Column<AppDetails> = {
  title: "Status",
  width: "minmax(116px, 0.8fr)",
  phone: true,
  cell: ({ status, drift }) => (
    <span className="row">
      <AppStatus status={status} drift={drift} />
    </span>
  ),
};
export const APP_TYPE: Column<AppDetails> = { title: "Application", cell: ({ appType, templateVersion }) => `${appType} ${templateVersion}` };
export const APP_PORTS: Column<AppDetails> = { title: "Ports", width: "120px", cell: ({ reported }) => Object.values(reported?.ports ?? {}).join(", ") };
export const APP_CHANGED: Column<AppDetails> = { title: "Changed", width: AGO_WIDTH, cell: ({ updatedAt }) => <Ago at={updatedAt} /> };
