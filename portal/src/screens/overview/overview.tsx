// The overview: is everything up, what changed, what needs somebody?
import { Link } from "@tanstack/react-router";
import { useMay } from "../../api/session.ts";
import { Empty, Page } from "../../ui/parts.tsx";
import { ActivityPanel } from "./activity-panel.tsx";
import { FleetPanel } from "./fleet-panel.tsx";
import { OfflinePanel } from "./offline-panel.tsx";
import css from "./overview.module.css";
import { RatePanel } from "./rate-panel.tsx";
import { text } from "./text.ts";
import { AlertTile, CommandTiles, DeviceTiles, useDeviceCounts } from "./tiles.tsx";

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
          <FleetPanel total={counts.total} />
          {readsCommands ? <RatePanel isNeeded={counts.total !== undefined} /> : null}
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
