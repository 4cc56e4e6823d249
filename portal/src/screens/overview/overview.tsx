// The overview: is everything up, what changed, what needs somebody?
import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { useMay } from "../../api/session.ts";
import { Empty, Page, Panel } from "../../ui/parts.tsx";
import { ActivityPanel } from "./activity-panel.tsx";
import { FleetPanel } from "./fleet-panel.tsx";
import { OfflinePanel } from "./offline-panel.tsx";
import css from "./overview.module.css";
import { text } from "./text.ts";
import { AlertTile, CommandTiles, DeviceTiles, useDeviceCounts } from "./tiles.tsx";

const RatePanel = lazy(() => import("./rate-panel.tsx").then((part) => ({ default: part.RatePanel })));
/** As high as the panel, which loads once it is known that there are devices. */
const ratePlace = (
  <Panel title={text.rate.title}>
    <div className={css["chartPlace"]} />
  </Panel>
);
/** Loads with the first device. */
const AppsPanel = lazy(() => import("./apps-panel.tsx").then((module) => ({ default: module.AppsPanel })));
/** Beyond these, people look for groups of devices, not for one app. */
const SMALL = 12;

const Fleet = () => {
  const may = useMay();
  const counts = useDeviceCounts();
  const readsCommands = may("command:read");
  if (counts.total === 0)
    return (
      <Page title={text.title}>
        <Empty action={may("device:pair") ? <Link to="/pair">{text.pair}</Link> : undefined}>{may("device:pair") ? text.none : text.nothing}</Empty>
      </Page>
    );
  return (
    <Page title={text.title}>
      <div className={css["tiles"]}>
        <DeviceTiles counts={counts} />
        {readsCommands ? <CommandTiles /> : null}
        {counts.total !== undefined && may("alert:read") ? <AlertTile /> : null}
      </div>
      <div className={css["columns"]}>
        <div className="stack">
          {counts.total !== undefined && counts.total <= SMALL && may("app:read") ? (
            <Suspense fallback={null}>
              <AppsPanel />
            </Suspense>
          ) : null}
          <FleetPanel total={counts.total} />
          {readsCommands ? <Suspense fallback={ratePlace}>{counts.total === undefined ? ratePlace : <RatePanel />}</Suspense> : null}
          <OfflinePanel />
        </div>
        <ActivityPanel readsCommands={readsCommands} />
      </div>
    </Page>
  );
};

export const OverviewScreen = () => {
  const may = useMay();
  return may("device:read") ? <Fleet /> : <Page title={text.title}>{text.notPermitted}</Page>;
};
