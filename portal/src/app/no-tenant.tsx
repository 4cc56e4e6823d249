// For a person who stands in no tenant: choose one, create one, or open an invite.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../api/client.ts";
import { resume, useMe } from "../api/session.ts";
import { SignOut } from "../parts/sign-out.tsx";
import { Field, Form, TextField } from "../ui/dialog.tsx";
import { Failure } from "../ui/failure.tsx";
import { tokenOf } from "../ui/fields/trim-input.ts";
import { Loaded, Page, Panel } from "../ui/parts.tsx";

/** A name as the tenant's part of URLs: `Café Nord` becomes `cafe-nord`. */
const slugOf = (name: string): string =>
  name
    .normalize("NFD")
    .toLowerCase()
    .replace(/[^a-z0-9\s-]/g, "")
    .trim()
    .replace(/[\s-]+/g, "-")
    .slice(0, 40);

const Choose = () => {
  const read = useQuery(api.account.tenants.queryOptions({}));
  const choose = useMutation(api.account.switchTenant.mutationOptions({ onSuccess: resume }));
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

const Create = ({ userId }: { readonly userId: string }) => {
  const [name, setName] = useState("");
  const [slug, setSlug] = useState<string | null>(null);
  const create = useMutation(api.tenants.create.mutationOptions({ onSuccess: resume }));
  return (
    <Panel title="Create a tenant">
      <p className="muted">A tenant holds your devices and the people you work with. You become its owner.</p>
      <Form
        submit="Create tenant"
        busy={create.isPending}
        error={create.error}
        onSubmit={() => create.mutate({ name: name.trim(), slug: slug ?? slugOf(name), userId })}
      >
        <Field label="Name">
          {(id) => <input id={id} value={name} required maxLength={100} autoComplete="off" onChange={(event) => setName(event.target.value)} />}
        </Field>
        <Field label="Short name" hint="For URLs: 3 to 40 characters of a-z, 0-9 and -.">
          {(id, hintId) => (
            <input
              id={id}
              aria-describedby={hintId}
              value={slug ?? slugOf(name)}
              required
              minLength={3}
              maxLength={40}
              autoComplete="off"
              onChange={(event) => setSlug(event.target.value)}
            />
          )}
        </Field>
      </Form>
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
      <Create userId={subject} />
    </Page>
  );
};
