// The tenant's name and short name.
import type { Tenant } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Form, TextField } from "../../ui/dialog.tsx";
import { ChangedElsewhere, useEdition } from "../../ui/edition.tsx";
import { Copyable, Facts, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { dayOf } from "../../ui/time.tsx";
import { text } from "./text.ts";

const TenantForm = ({ of }: { readonly of: Tenant }) => {
  const edition = useEdition(of);
  const { shown, show } = edition;
  const update = useMutation(
    api.tenants.update.mutationOptions({
      onSuccess: (tenant) => {
        show(tenant);
        return Promise.all([queryClient.invalidateQueries(api.tenants.pathFilter()), queryClient.invalidateQueries(api.account.pathFilter())]);
      },
    }),
  );
  return (
    <>
      <Form
        key={shown.version}
        submit={text.save}
        busy={update.isPending}
        error={update.error}
        disabled={of.status !== "active"}
        onSubmit={(fields) =>
          update.mutate({ tenantId: of.tenantId, version: shown.version, name: String(fields.get("name")), slug: String(fields.get("slug")) })
        }
      >
        <TextField label={text.name} name="name" required maxLength={100} defaultValue={shown.name} />
        <TextField label={text.slug} name="slug" required maxLength={40} hint={text.slugHint} defaultValue={shown.slug} />
      </Form>
      <ChangedElsewhere of={edition} />
      <p role="status">{update.isSuccess ? text.saved : ""}</p>
    </>
  );
};

export const TenantPanel = ({ of }: { readonly of: Tenant }) => {
  const mayUpdate = useMay()("tenant:update");
  const { tenantId, name, slug, plan, status, createdAt } = of;
  return (
    <Panel title={text.tenant}>
      <Facts
        of={{
          ...(mayUpdate ? {} : { [text.name]: name, [text.slug]: slug }),
          Id: <Copyable text={tenantId} />,
          Plan: plan,
          State: <Status status={status} />,
          Created: dayOf(createdAt),
        }}
      />
      {mayUpdate ? <TenantForm of={of} /> : null}
    </Panel>
  );
};
