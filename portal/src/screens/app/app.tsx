// One app: how it is, how it should be, what it waits for, and everything that people do with it.
import type { App } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { AppFailure } from "../../parts/app-failure.tsx";
import { AppLogs } from "../../parts/app-logs.tsx";
import { AppStatus } from "../../parts/app-status.tsx";
import { AppSteps } from "../../parts/app-steps.tsx";
import { Drift } from "../../parts/drift.tsx";
import { Copyable, Loaded, Page, Panel } from "../../ui/parts.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { AppActions } from "./actions.tsx";
import { AppConfiguration } from "./configuration.tsx";
import { AppFacts } from "./facts.tsx";
import { TABS } from "./search.ts";
import { AppSecrets } from "./secrets.tsx";
import { AppSnapshots } from "./snapshots.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/apps/$appId");
type Tab = (typeof TABS)[number];

const REPORTS_MS = 15_000;

/** What some roles do not see. */
const NEEDS: Readonly<Partial<Record<Tab, string>>> = { logs: "app:logs", secrets: "app:secrets:write" };

const Steps = ({ app: { appId } }: { readonly app: App }) => {
  const read = useQuery(api.apps.timeline.queryOptions({ appId }));
  return (
    <Panel title={text.tabs.steps}>
      <Loaded read={read}>{(timeline) => <AppSteps timeline={timeline} />}</Loaded>
    </Panel>
  );
};

const Logs = ({ app: { appId, name } }: { readonly app: App }) => <AppLogs key={appId} appId={appId} name={name} />;

const PARTS = { steps: Steps, logs: Logs, configuration: AppConfiguration, secrets: AppSecrets, snapshots: AppSnapshots } as const;

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
  const tab = tabs.find((each) => each === search.tab) ?? "steps";
  const Part = PARTS[tab];
  return (
    <Page
      title={app?.name ?? text.one}
      beside={
        <>
          {app === undefined ? null : <AppStatus status={app.status} drift={app.drift} />}
          <Copyable text={appId} />
        </>
      }
      actions={app === undefined ? undefined : <AppActions app={app} />}
    >
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            <AppFacts app={found} />
            <AppFailure failure={found.failure} />
            <Drift app={found} />
            <Tabs label={text.tabList} tabs={tabs} words={text.tabs} current={tab} />
            <Part app={found} />
          </>
        )}
      </Loaded>
    </Page>
  );
};
