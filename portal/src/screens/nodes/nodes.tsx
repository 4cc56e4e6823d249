// Nodes: whether the gateway itself is well, for the people who run the installation.
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMe } from "../../api/session.ts";
import { Page } from "../../ui/parts.tsx";
import { DependencyPanel } from "./dependency-panel.tsx";
import { JobList } from "./job-list.tsx";
import { NodeList } from "./node-list.tsx";
import css from "./nodes.module.css";
import { TABS } from "./search.ts";
import { StuckList } from "./stuck-list.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/nodes");

const Tabs = () => {
  const { tab = "nodes" } = route.useSearch();
  return (
    <Page title={text.title}>
      <nav className={css["tabs"]} aria-label={text.title}>
        {TABS.map((each) => (
          <Link
            key={each}
            to="/nodes"
            search={each === "nodes" ? {} : { tab: each }}
            className={css["tab"]}
            activeOptions={{ exact: true, includeSearch: true }}
          >
            {text.tabs[each]}
          </Link>
        ))}
      </nav>
      {tab === "nodes" ? (
        <>
          <NodeList />
          <DependencyPanel />
        </>
      ) : tab === "stuck" ? (
        <StuckList />
      ) : (
        <JobList />
      )}
    </Page>
  );
};

export const NodesScreen = () => {
  const { administrator } = useMe();
  return administrator ? <Tabs /> : <Page title={text.title}>{text.notYours}</Page>;
};
