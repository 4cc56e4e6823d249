// The overview: what needs somebody, then what people use, then how the whole is doing.
import type { Overview } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { api, queryClient } from "../../api/client.ts";
import { isStored, type ReadAgain, useReadAgain } from "../../api/read-again.ts";
import { useMay } from "../../api/session.ts";
import { Empty, Loaded, Page, Panel } from "../../ui/parts.tsx";
import { ActivityPanel } from "./activity-panel.tsx";
import { AttentionPanel, useAttention } from "./attention-panel.tsx";
import css from "./overview.module.css";
import { SetupPanel, showsSetup } from "./setup-panel.tsx";
import { SMALL } from "./small-fleet.ts";
import { text } from "./text.ts";

const Few = lazy(() => import("./few.tsx").then((part) => ({ default: part.AppsPanel })));
const FewDevices = lazy(() => import("./few.tsx").then((part) => ({ default: part.DevicesPanel })));
const FiguresPanel = lazy(() => import("./many.tsx").then((part) => ({ default: part.FiguresPanel })));
const GroupsPanel = lazy(() => import("./many.tsx").then((part) => ({ default: part.GroupsPanel })));
const ChangesPanel = lazy(() => import("./many.tsx").then((part) => ({ default: part.ChangesPanel })));

const isLarge = (): boolean => queryClient.getQueriesData<Overview>(api.overview.pathFilter()).some(([, known]) => (known?.devices.total ?? 0) > SMALL);
const READ_AGAIN: ReadAgain = {
  after: isStored,
  reads: [api.overview.pathFilter(), api.attention.pathFilter()],
  // A large fleet has events all the time, and each read counts all of it.
  waitMs: () => (isLarge() ? 10_000 : 1_000),
};

const route = getRouteApi("/");
const useOverview = () => {
  const { group } = route.useSearch();
  return useQuery(api.overview.get.queryOptions(group === undefined ? {} : { groupBy: group }, { placeholderData: (before) => before }));
};

const Actions = ({ plain }: { readonly plain: boolean }) => {
  const may = useMay();
  return (
    <>
      {may("app:create") ? (
        <Link to="/catalogue" data-kind="button">
          {text.install}
        </Link>
      ) : null}
      {may("device:pair") ? (
        <Link to="/pair" data-kind={plain ? "button" : "primary"}>
          {text.pair}
        </Link>
      ) : null}
    </>
  );
};

const Small = ({ overview }: { readonly overview: Overview }) => {
  const may = useMay();
  return (
    <div className={css["columns"]}>
      <div className="stack">
        <AttentionPanel overview={overview} />
        <SetupPanel setup={overview.setup} />
        <Suspense fallback={null}>{may("app:read") && (overview.apps?.total ?? 0) > 0 ? <Few /> : null}</Suspense>
      </div>
      <div className="stack">
        <Suspense fallback={null}>{overview.devices.total > 0 ? <FewDevices /> : null}</Suspense>
        <ActivityPanel activity={overview.activity} />
      </div>
    </div>
  );
};

const Large = ({ overview }: { readonly overview: Overview }) => (
  <Suspense fallback={null}>
    <FiguresPanel overview={overview} />
    <div className={css["columns"]}>
      <div className="stack">
        <AttentionPanel overview={overview} />
        <SetupPanel setup={overview.setup} />
        {overview.groups.key === null ? null : <GroupsPanel groups={overview.groups} />}
      </div>
      <div className="stack">
        {overview.changes.length > 0 ? <ChangesPanel changes={overview.changes} /> : null}
        <ActivityPanel activity={overview.activity} />
      </div>
    </div>
  </Suspense>
);

const Tenant = () => {
  const may = useMay();
  const read = useOverview();
  useAttention();
  useReadAgain(READ_AGAIN);
  const overview = read.data;
  const hasSetup = overview !== undefined && may("tenant:update") && showsSetup(overview.setup);
  const total = overview?.devices.total ?? 0;
  return (
    <Page
      title={text.title}
      beside={overview === undefined ? null : <span className="muted">{text.total(total, overview.apps?.total ?? null)}</span>}
      actions={overview === undefined ? undefined : <Actions plain={hasSetup} />}
    >
      <Loaded read={read} rows={6}>
        {(known) => {
          if (total === 0 && !hasSetup)
            return (
              <Panel title={text.devices.title}>
                <Empty>{may("device:pair") ? text.none : text.nothing}</Empty>
              </Panel>
            );
          return total <= SMALL ? <Small overview={known} /> : <Large overview={known} />;
        }}
      </Loaded>
    </Page>
  );
};

export const OverviewScreen = () => {
  const may = useMay();
  return may("device:read") ? <Tenant /> : <Page title={text.title}>{text.notPermitted}</Page>;
};
