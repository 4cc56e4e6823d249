// Security: what looks like an attack, the alerts that need somebody, the rules behind them, and who is blocked.
import { getRouteApi } from "@tanstack/react-router";
import { Page } from "../../ui/parts.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { AlertList } from "./alert-list.tsx";
import { Blocked } from "./blocked.tsx";
import { EventList } from "./events.tsx";
import { SecurityFigures } from "./figures.tsx";
import { Rules } from "./rules.tsx";
import { TABS, type Tab } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/security");

const SHOWN = { alerts: AlertList, events: EventList, rules: Rules, blocked: Blocked } as const satisfies Record<Tab, () => React.ReactNode>;

export const SecurityScreen = () => {
  const { tab = "alerts" } = route.useSearch();
  const Shown = SHOWN[tab];
  return (
    <Page title={text.title} fill>
      <SecurityFigures />
      <Tabs label={text.title} tabs={TABS} words={text.tabs} current={tab} />
      <Shown key={tab} />
    </Page>
  );
};
