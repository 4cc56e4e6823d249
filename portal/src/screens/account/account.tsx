// The person's own account: profile, tenants, sessions, notifications, data, and the way out.
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, forgetToken } from "../../api/client.ts";
import { Columns } from "../../ui/columns.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Loaded, Page } from "../../ui/parts.tsx";
import { Notices } from "./notices.tsx";
import { OwnData } from "./own-data.tsx";
import { Profile } from "./profile.tsx";
import { Sessions } from "./sessions.tsx";
import { Tenants } from "./tenants.tsx";
import { text } from "./text.ts";

const SignOut = () => {
  const logout = useMutation(
    api.sessions.logout.mutationOptions({
      onSuccess: ({ endSessionUrl }) => {
        forgetToken();
        location.assign(endSessionUrl ?? "/sign-in");
      },
    }),
  );
  return (
    <>
      {logout.error === null ? null : <Failure error={logout.error} />}
      <button type="button" disabled={logout.isPending} onClick={() => logout.mutate({})}>
        {text.signOut}
      </button>
    </>
  );
};

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
