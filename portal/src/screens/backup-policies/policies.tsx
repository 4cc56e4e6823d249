// The backup policies of the tenant: what is backed up by itself, when next, and whether that worked.
import type { BackupPolicyWithActors as BackupPolicy } from "@mooring/client";
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
import { PolicyForm } from "./form.tsx";
import { text } from "./text.ts";

const COLUMNS: readonly Column<BackupPolicy>[] = [
  { title: text.name, phone: true, cell: ({ name }) => <span title={name}>{name}</span> },
  {
    title: text.state,
    width: "minmax(130px, 0.8fr)",
    phone: true,
    cell: ({ enabled, lastStatus }) => (
      <span className="row">
        {enabled ? null : <Status status="paused" word={text.paused} />}
        {lastStatus === null ? null : <Status status={lastStatus} />}
      </span>
    ),
  },
  { title: text.schedule, width: "140px", cell: ({ schedule }) => <code>{schedule}</code> },
  { title: text.lastRun, width: AGO_WIDTH, cell: ({ lastRunAt }) => <Ago at={lastRunAt} /> },
  { title: text.nextRun, width: AGO_WIDTH, phone: true, cell: ({ nextRunAt }) => (nextRunAt === null ? "" : <Ago at={nextRunAt} />) },
];

const Create = ({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: (policyId: string) => void }) => {
  const create = useMutation(
    api.backupPolicies.create.mutationOptions({
      onSuccess: async ({ policyId }) => {
        await queryClient.invalidateQueries(api.backupPolicies.pathFilter());
        onDone(policyId);
      },
    }),
  );
  return (
    <Dialog title={text.create} open onClose={onClose}>
      <PolicyForm submit={text.create} action={create} onSubmit={({ from: _, ...wishes }) => create.mutate(wishes)} onCancel={onClose} />
    </Dialog>
  );
};

export const PoliciesScreen = () => {
  const may = useMay();
  const navigate = useNavigate();
  const [creates, setCreates] = useState(false);
  const list = usePages<BackupPolicy>((page) => api.backupPolicies.list.queryOptions({ sort: "name", page, pageSize: PAGE_SIZE }));
  const open = (policyId: string): void => void navigate({ to: "/backups/policies/$policyId", params: { policyId } });
  const create = may("backup_policy:write") ? (
    <button type="button" data-kind="primary" onClick={() => setCreates(true)}>
      {text.create}
    </button>
  ) : undefined;
  return (
    <Page title={text.title} fill actions={list.count > 0 ? create : undefined}>
      <List
        label={text.title}
        columns={COLUMNS}
        list={list}
        rows={6}
        id={({ policyId }) => policyId}
        onOpen={({ policyId }) => open(policyId)}
        none={text.none}
        action={create}
      />
      {creates ? <Create onClose={() => setCreates(false)} onDone={open} /> : null}
    </Page>
  );
};
