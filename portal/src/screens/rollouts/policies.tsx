// The update policies of the tenant: in which phases fleets are updated, when, and what stops that.
import type { UpdatePolicy } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { phasesText } from "./policy-fields.ts";
import { PolicyForm } from "./policy-form.tsx";
import { subjectText, text } from "./text.ts";

const COLUMNS: readonly Column<UpdatePolicy>[] = [
  { title: text.name, width: "minmax(140px, 2fr)", phone: true, cell: ({ name }) => <strong title={name}>{name}</strong> },
  { title: text.subject, width: "minmax(90px, 1fr)", cell: ({ subject }) => subjectText(subject) },
  { title: text.phases, width: "minmax(110px, 1fr)", phone: true, cell: ({ phases }) => phasesText(phases) },
  { title: text.state, width: "110px", phone: true, cell: ({ enabled }) => (enabled ? null : <Status status="paused" word={text.disabled} />) },
  { title: text.changed, width: AGO_WIDTH, cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
];

const Create = ({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: (updatePolicyId: UpdatePolicy["updatePolicyId"]) => void }) => {
  const create = useMutation(
    api.rollouts.createPolicy.mutationOptions({
      onSuccess: async ({ updatePolicyId }) => {
        await queryClient.invalidateQueries(api.rollouts.pathFilter());
        onDone(updatePolicyId);
      },
    }),
  );
  return (
    <Dialog title={text.createPolicy} open onClose={onClose}>
      <PolicyForm submit={text.createPolicy} action={create} onSubmit={(wishes) => create.mutate(wishes)} onCancel={onClose} />
    </Dialog>
  );
};

export const PoliciesScreen = () => {
  const may = useMay();
  const navigate = useNavigate();
  const [creates, setCreates] = useState(false);
  const list = usePages<UpdatePolicy>((page) => api.rollouts.listPolicies.queryOptions({ sort: "name", page, pageSize: PAGE_SIZE }));
  const open = (updatePolicyId: UpdatePolicy["updatePolicyId"]): void =>
    void navigate({ to: "/rollouts/policies/$updatePolicyId", params: { updatePolicyId } });
  const create = may("fleet:write") ? (
    <button type="button" data-kind="primary" onClick={() => setCreates(true)}>
      {text.createPolicy}
    </button>
  ) : undefined;
  return (
    <Page title={text.policies} fill actions={list.count > 0 ? create : undefined}>
      <List
        label={text.policies}
        columns={COLUMNS}
        list={list}
        rows={6}
        id={({ updatePolicyId }) => updatePolicyId}
        onOpen={({ updatePolicyId }) => open(updatePolicyId)}
        none={text.nonePolicies}
        action={create}
      />
      {creates ? <Create onClose={() => setCreates(false)} onDone={open} /> : null}
    </Page>
  );
};
