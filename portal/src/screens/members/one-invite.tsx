// One invite: what it says, what became of it, and how to send it again or revoke it.
import type { Invite } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { selectorText } from "../../parts/selector-field.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Copyable, Facts, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const refresh = (): void => void queryClient.invalidateQueries(api.invites.pathFilter());

const Actions = ({ of: { inviteId, status }, onRevoke }: { readonly of: Invite; readonly onRevoke: () => void }) => {
  const resend = useMutation(api.invites.resend.mutationOptions({ onSuccess: refresh }));
  if (status !== "pending" && status !== "expired") return null;
  return (
    <>
      {resend.error === null ? null : <Failure key={resend.submittedAt} error={resend.error} />}
      {resend.data === undefined ? null : (
        <div role="status" className="stack">
          <p>{resend.data.link === undefined ? text.resent : text.newLink}</p>
          {resend.data.link === undefined ? null : (
            <div>
              <Copyable text={resend.data.link} />
            </div>
          )}
        </div>
      )}
      <div className="row">
        <button type="button" disabled={resend.isPending} onClick={() => resend.mutate({ inviteId })}>
          {text.resend}
        </button>
        {status === "pending" ? (
          <button type="button" data-kind="danger" onClick={onRevoke}>
            {text.revoke}
          </button>
        ) : null}
      </div>
    </>
  );
};

export const OneInvite = ({ inviteId, onClose }: { readonly inviteId: string; readonly onClose: () => void }) => {
  const may = useMay();
  const [revokes, setRevokes] = useState(false);
  const read = useQuery(api.invites.get.queryOptions({ inviteId }));
  const roles = useQuery(api.roles.list.queryOptions({}));
  const revoke = useMutation(
    api.invites.revoke.mutationOptions({
      onSuccess: () => {
        refresh();
        onClose();
      },
    }),
  );
  if (revokes)
    return (
      <Confirm
        title={text.revokeTitle}
        open
        onClose={() => setRevokes(false)}
        submit={text.revoke}
        action={revoke}
        onConfirm={() => revoke.mutate({ inviteId })}
      >
        {text.revokeText}
      </Confirm>
    );
  return (
    <Dialog title={read.data?.email ?? text.tabs.invites} open onClose={onClose}>
      <Loaded read={read}>
        {(invite) => (
          <>
            <Facts
              of={{
                State: <Status status={invite.status} />,
                [text.role]: roles.data?.items.find(({ roleId, key }) => roleId === invite.roleId || key === invite.roleId)?.name ?? invite.roleId,
                [text.devices]: selectorText(invite.selector),
                Expires: <Ago at={invite.expiresAt} />,
                Sent: text.sent(invite.sendCount),
                Mail: invite.delivery === null ? undefined : <Status status={invite.delivery.status} />,
                "Mail server": invite.delivery?.lastError,
                "Invited by": invite.invitedBy.replace(/^user:/, ""),
                Message: invite.message,
                Id: <Copyable text={invite.inviteId} />,
              }}
            />
            {may("invite:write") ? <Actions of={invite} onRevoke={() => setRevokes(true)} /> : null}
          </>
        )}
      </Loaded>
    </Dialog>
  );
};
