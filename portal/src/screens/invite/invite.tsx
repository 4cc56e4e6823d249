// What an invited person sees: who invites them to what, and how to accept or decline.
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { api, codeOf, mooring } from "../../api/client.ts";
import { SignOut } from "../../parts/sign-out.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { type FailureProps, factsOf, Refusal } from "../../ui/failure.tsx";
import { Facts, Page, Skeleton } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/invite");

const Refused = (failure: FailureProps) => (
  <Refusal sentence={text.refusal(codeOf(failure.error)) ?? text.mismatch(factsOf(failure.error).details["reason"])} {...failure} />
);

const Answers = ({ token, isSignedIn }: { readonly token: string; readonly isSignedIn: boolean }) => {
  const [asks, setAsks] = useState(false);
  const accept = useMutation(
    api.invites.accept.mutationOptions({
      onSuccess: async ({ tenantId }) => {
        // Who belongs to several tenants would otherwise stand in the one before, or in none.
        await mooring.account.switchTenant.mutate({ tenantId });
        location.assign("/");
      },
    }),
  );
  const decline = useMutation(api.invites.decline.mutationOptions({ onSuccess: () => setAsks(false) }));
  if (decline.isSuccess) return <p role="status">{text.declined}</p>;
  return (
    <>
      {accept.error === null ? null : <Refused key={accept.submittedAt} error={accept.error} />}
      {isSignedIn ? null : <p>{text.signInFirst}</p>}
      <div className="row">
        {isSignedIn ? (
          <button type="button" data-kind="primary" disabled={accept.isPending} onClick={() => accept.mutate({ token })}>
            {text.accept}
          </button>
        ) : null}
        <button type="button" onClick={() => setAsks(true)}>
          {text.decline}
        </button>
        {/* The gateway keeps the person's tenant and address with the session. */}
        {codeOf(accept.error) === "INVITE_EMAIL_MISMATCH" ? <SignOut label={text.signInAgain} stays /> : null}
      </div>
      <Confirm
        title={text.declineTitle}
        open={asks}
        onClose={() => setAsks(false)}
        submit={text.decline}
        action={decline}
        onConfirm={() => decline.mutate({ token })}
      >
        {text.declineText}
      </Confirm>
    </>
  );
};

const Invited = ({ token }: { readonly token: string }) => {
  // The frame around the screen asks who is signed in; here nothing is asked that may be refused.
  const isSignedIn = useQuery({ ...api.general.me.queryOptions({}), enabled: false }).data !== undefined;
  const read = useQuery({ ...api.invites.lookup.queryOptions({ token }), staleTime: Number.POSITIVE_INFINITY, refetchInterval: false });
  if (read.data === undefined)
    return (
      <Page title={text.title}>
        {read.error === null ? <Skeleton rows={4} /> : <Refused key={read.errorUpdatedAt} error={read.error} retry={() => void read.refetch()} />}
      </Page>
    );
  const { tenantName, inviter, roleId, email, message, expiresAt } = read.data;
  return (
    <Page title={text.titleOf(tenantName)}>
      <p>
        {text.invites(inviter, tenantName)} {text.role(roleId)}
      </p>
      <Facts of={{ [text.address]: email, [text.expires]: <Ago at={expiresAt} />, [text.message]: message }} />
      <Answers token={token} isSignedIn={isSignedIn} />
    </Page>
  );
};

export const InviteScreen = () => {
  const { token } = route.useSearch();
  if (token === undefined) return <Page title={text.title}>{text.noToken}</Page>;
  return <Invited key={token} token={token} />;
};
