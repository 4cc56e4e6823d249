// One deployment: how far it is, why it failed, what it changed, and everything that people do with it.
import type { Deployment } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { AppFailure } from "../../parts/app-failure.tsx";
import { AppLogs } from "../../parts/app-logs.tsx";
import { AppStatus } from "../../parts/app-status.tsx";
import { AppSteps } from "../../parts/app-steps.tsx";
import { Drift } from "../../parts/drift.tsx";
import { Copyable, Empty, Loaded, Page, Panel } from "../../ui/parts.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { DeploymentActions } from "./actions.tsx";
import { DeploymentChange } from "./change.tsx";
import { DeploymentFacts } from "./facts.tsx";
import { DeploymentRevisions } from "./revisions.tsx";
import { TABS } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/deployments/$deploymentId");

const Steps = ({ of: { deploymentId } }: { readonly of: Deployment }) => {
  const read = useQuery(api.deployments.timeline.queryOptions({ deploymentId }));
  return (
    <Panel title={text.tabs.steps}>
      <Loaded read={read}>{(timeline) => <AppSteps timeline={timeline} />}</Loaded>
    </Panel>
  );
};

/** Whether its app is as it should be. */
const AppDrift = ({ appId }: { readonly appId: string }) => {
  const app = useQuery(api.apps.get.queryOptions({ appId })).data;
  return app === undefined ? null : <Drift app={app} />;
};

const Logs = ({ of: { appId, name } }: { readonly of: Deployment }) =>
  appId === null ? <Empty>{text.noApp}</Empty> : <AppLogs key={appId} appId={appId} name={name} />;

const PARTS = { steps: Steps, logs: Logs, change: DeploymentChange, revisions: DeploymentRevisions } as const;
/** What some roles do not see. */
const NEEDS: Readonly<Partial<Record<keyof typeof PARTS, readonly string[]>>> = { logs: ["app:logs"], change: ["deployment:deploy", "app:read"] };

export const DeploymentScreen = () => {
  const { deploymentId } = route.useParams();
  const search = route.useSearch();
  const may = useMay();
  const read = useQuery(api.deployments.get.queryOptions({ deploymentId }));
  const deployment = read.data;
  const tabs = TABS.filter((tab) => (NEEDS[tab] ?? []).every(may));
  const tab = tabs.find((each) => each === search.tab) ?? "steps";
  const Part = PARTS[tab];
  return (
    <Page
      title={deployment?.name ?? text.one}
      beside={
        <>
          {deployment === undefined ? null : <AppStatus status={deployment.status} />}
          <Copyable text={deploymentId} />
        </>
      }
      actions={deployment === undefined ? undefined : <DeploymentActions of={deployment} />}
    >
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            <DeploymentFacts of={found} />
            {found.isDefault ? <p>{text.default}</p> : null}
            <AppFailure failure={found.failure} />
            {found.appId === null || !may("app:read") ? null : <AppDrift appId={found.appId} />}
            {found.template === null ? (
              <p>{text.group}</p>
            ) : (
              <>
                <Tabs label={text.tabList} tabs={tabs} words={text.tabs} current={tab} />
                <Part of={found} />
              </>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
};
