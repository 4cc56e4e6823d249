// The apps of a device, and which of them are not as they should be.
import type { AppDetails } from "@mooring/client";
import { Link, useNavigate } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { APP_CHANGED, APP_NAME, APP_PORTS, APP_STATUS, APP_TYPE } from "../../parts/apps/app-columns.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import { text } from "./text.ts";

const COLUMNS = [APP_NAME, APP_STATUS, APP_TYPE, APP_PORTS, APP_CHANGED];

export const DeviceApps = ({ deviceId }: { readonly deviceId: string }) => {
  const navigate = useNavigate();
  const list = usePages<AppDetails>((page) => api.apps.list.queryOptions({ deviceId, sort: "name", page, pageSize: PAGE_SIZE }));
  return (
    <List
      label={text.tabs.apps}
      columns={COLUMNS}
      list={list}
      id={({ appId }) => appId}
      onOpen={({ appId }) => void navigate({ to: "/apps/$appId", params: { appId } })}
      none={text.noApps}
      action={<Link to="/catalogue">{text.catalogue}</Link>}
    />
  );
};
