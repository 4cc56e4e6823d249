// One app: how it is, what it shows, what it waits for, its history, and everything that people do with it.
import type { AppDetails } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { AppLogs } from "../../parts/apps/app-logs.tsx";
import { Loaded, Page } from "../../ui/parts.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { AppBackups } from "./backups.ts";
import { AppConfiguration } from "./configuration.tsx";
import { AppHeader } from "./header.tsx";
import { AppHistory } from "./history.tsx";
import { AppOverview } from "./overview.tsx";
import { TABS } from "./search.ts";
import { AppSecrets } from "./secrets.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/apps/$appId");
type Tab = (typeof TABS)[number];

const REPORTS_MS = 15_000;

/** What some roles do not see. */
const NEEDS: Readonly<Partial<Record<Tab, string>>> = { logs: "app:logs", backups: "backup:read", secrets: "app:secrets:write" };

const Logs = ({ app: { appId, name } }: { readonly app: AppDetails }) => <AppLogs key={appId} appId={appId} name={name} />;

const PARTS = { overview: AppOverview, logs: Logs, configuration: AppConfiguration, history: AppHistory, backups: AppBackups, secrets: AppSecrets } as const;

export const AppScreen = () => {
  const { appId } = route.useParams();
  const search = route.useSearch();
  const may = useMay();
  // What an app uses has no event.
  const read = useQuery({ ...api.apps.get.queryOptions({ appId }), refetchInterval: REPORTS_MS });
  const app = read.data;
  const tabs = TABS.filter((tab) => {
    const need = NEEDS[tab];
    return need === undefined || may(need);
  });
  const tab = tabs.find((each) => each === search.tab) ?? "overview";
  const Part = PARTS[tab];
  const part = (
    <Loaded read={read} rows={8}>
      {(found) => <Part app={found} />}
    </Loaded>
  );
  if (app === undefined) return <Page title={text.one}>{part}</Page>;
  return (
    <AppHeader key={appId} app={app} tabs={<Tabs label={text.tabList} tabs={tabs} words={text.tabs} current={tab} />}>
      {part}
    </AppHeader>
  );
};
