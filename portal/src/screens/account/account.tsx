// The person's own account: profile, tenants, sessions, notifications, data, and the way out.
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { SignOut } from "../../parts/sign-out.tsx";
import { Columns } from "../../ui/columns.tsx";
import { Loaded, Page } from "../../ui/parts.tsx";
import { Notices } from "./notices.tsx";
import { OwnData } from "./own-data.tsx";
import { Profile } from "./profile.tsx";
import { Sessions } from "./sessions.tsx";
import { Tenants } from "./tenants.tsx";
import { text } from "./text.ts";

export const AccountScreen = () => {
  const account = useQuery(api.account.get.queryOptions({}));
  return (
    <Page title={text.title} actions={<SignOut />}>
      <Columns>
        <Loaded read={account} rows={5}>
          {(own) => <Profile of={own} />}
        </Loaded>
        <Tenants />
        <Sessions />
        <Notices />
        {account.data === undefined ? null : <OwnData of={account.data} />}
      </Columns>
    </Page>
  );
};
