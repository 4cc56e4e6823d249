// Alerts: what needs somebody, the rules that say so, the silences that keep them quiet, and the channels that tell of them.
import { getRouteApi } from "@tanstack/react-router";
import { useMay } from "../../api/session.ts";
import { Empty, Page } from "../../ui/parts.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { AlertList } from "./alert-list.tsx";
import { Channels } from "./channels.tsx";
import { Rules } from "./rules.tsx";
import { TABS, type Tab } from "./search.ts";
import { Silences } from "./silences.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/alerts");

const SHOWN = { alerts: AlertList, rules: Rules, silences: Silences, channels: Channels } as const satisfies Record<Tab, () => React.ReactNode>;

export const AlertsScreen = () => {
  const { tab = "alerts" } = route.useSearch();
  const may = useMay();
  const tabs = TABS.filter((each) => each === "alerts" || may("alert_rule:read"));
  const Shown = SHOWN[tab];
  return (
    <Page title={text.title} fill>
      {tabs.length < 2 ? null : <Tabs label={text.title} tabs={tabs} words={text.tabs} current={tab} />}
      {tabs.includes(tab) ? <Shown key={tab} /> : <Empty>{text.forbidden}</Empty>}
    </Page>
  );
};
