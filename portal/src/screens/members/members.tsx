// Who belongs to the tenant: members, invites, and the roles that say what each may do.
import { getRouteApi } from "@tanstack/react-router";
import { useMay } from "../../api/session.ts";
import { Empty, Page } from "../../ui/parts.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Invites } from "./invites.tsx";
import { MemberList } from "./member-list.tsx";
import { Roles } from "./roles.tsx";
import type { Tab } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/members");

const SHOWN = { members: MemberList, invites: Invites, roles: Roles } as const satisfies Record<Tab, () => React.ReactNode>;

export const MembersScreen = () => {
  const { tab = "members" } = route.useSearch();
  const may = useMay();
  const needs = { members: "member:read", invites: "invite:read", roles: "role:read" } as const satisfies Record<Tab, string>;
  const tabs = (Object.keys(SHOWN) as Tab[]).filter((each) => may(needs[each]));
  const Shown = SHOWN[tab];
  return (
    <Page title={text.title} fill>
      {tabs.length < 2 ? null : <Tabs label={text.title} tabs={tabs} words={text.tabs} current={tab} />}
      {tabs.includes(tab) ? <Shown /> : <Empty>{text.forbidden}</Empty>}
    </Page>
  );
};
