// For a person who stands in no tenant: choose one, create one, or open an invite.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { api } from "../api/client.ts";
import { useMe } from "../api/session.ts";
import { CreateTenant } from "../parts/create-tenant.tsx";
import { SignOut } from "../parts/sign-out.tsx";
import { Form, TextField } from "../ui/dialog.tsx";
import { Failure } from "../ui/failure.tsx";
import { tokenOf } from "../ui/fields/trim-input.ts";
import { Loaded, Page, Panel } from "../ui/parts.tsx";

const enter = (): void => location.reload();

const Choose = () => {
  const read = useQuery(api.account.tenants.queryOptions({}));
  const choose = useMutation(api.account.switchTenant.mutationOptions({ onSuccess: enter }));
  return (
    <Panel title="Your tenants">
      <Loaded read={read}>
        {({ items }) => (
          <div className="row">
            {items.map(({ tenantId, name }) => (
              <button key={tenantId} type="button" disabled={choose.isPending} onClick={() => choose.mutate({ tenantId })}>
                {name}
              </button>
            ))}
          </div>
        )}
      </Loaded>
      {choose.error === null ? null : <Failure key={choose.submittedAt} error={choose.error} />}
    </Panel>
  );
};

const OpenInvite = () => {
  const navigate = useNavigate();
  const open = (fields: FormData): void => {
    void navigate({ to: "/invite", search: { token: tokenOf(String(fields.get("link"))) } });
  };
  return (
    <Panel title="Open an invite">
      <Form submit="Open" busy={false} error={null} onSubmit={open}>
        <TextField label="Link of the invite" name="link" required maxLength={2_000} />
      </Form>
    </Panel>
  );
};

export const NoTenant = () => {
  const { subject, memberships, administrator } = useMe();
  return (
    <Page title="You are in no tenant" actions={<SignOut />}>
      <p>
        You are signed in as <strong>{subject}</strong>.
      </p>
      {administrator ? <Link to="/nodes">Nodes of this installation</Link> : null}
      {memberships.length > 0 ? <Choose /> : null}
      <OpenInvite />
      <Panel title="Create a tenant">
        <CreateTenant userId={subject} onCreated={enter} />
      </Panel>
    </Page>
  );
};
