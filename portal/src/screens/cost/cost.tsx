// Costs: what the month has cost and who, the rates behind it, and the budgets that watch it.
import { getRouteApi } from "@tanstack/react-router";
import { useMay } from "../../api/session.ts";
import { Empty, Page } from "../../ui/parts.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Budgets } from "./budgets.tsx";
import { Month } from "./month.tsx";
import { Rates } from "./rates.tsx";
import { TABS, type Tab } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/cost");

const SHOWN = { month: Month, rates: Rates, budgets: Budgets } as const satisfies Record<Tab, () => React.ReactNode>;

export const CostScreen = () => {
  const { tab = "month" } = route.useSearch();
  const seesAll = useMay()("cost_budget:read");
  const Shown = SHOWN[tab];
  return (
    <Page title={text.title}>
      {seesAll ? <Tabs label={text.title} tabs={TABS} words={text.tabs} current={tab} /> : null}
      {tab === "month" || seesAll ? <Shown key={tab} /> : <Empty>{text.forWhole}</Empty>}
    </Page>
  );
};
