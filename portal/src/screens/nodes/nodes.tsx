// Nodes: whether the gateway itself is well, for the people who run the installation.
import { getRouteApi } from "@tanstack/react-router";
import { useMe } from "../../api/session.ts";
import { Page } from "../../ui/parts.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { AnnouncementList } from "./announcement-list.tsx";
import { DependencyPanel } from "./dependency-panel.tsx";
import { ImpersonationList } from "./impersonation-list.tsx";
import { JobList } from "./job-list.tsx";
import { NodeList } from "./node-list.tsx";
import { TABS } from "./search.ts";
import { StuckList } from "./stuck-list.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/nodes");

const AllNodes = () => {
  const { tab = "nodes" } = route.useSearch();
  return (
    <Page title={text.title}>
      <Tabs label={text.title} tabs={TABS} words={text.tabs} current={tab} />
      {tab === "nodes" ? (
        <>
          <NodeList />
          <DependencyPanel />
        </>
      ) : tab === "stuck" ? (
        <StuckList />
      ) : tab === "jobs" ? (
        <JobList />
      ) : tab === "announcements" ? (
        <AnnouncementList />
      ) : (
        <ImpersonationList />
      )}
    </Page>
  );
};

export const NodesScreen = () => {
  const { administrator } = useMe();
  return administrator ? <AllNodes /> : <Page title={text.title}>{text.notYours}</Page>;
};
