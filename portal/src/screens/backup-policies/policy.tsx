// One backup policy: when it runs next, how its runs went, and what its rules keep.
import type { BackupPolicyWithActors as BackupPolicy, BackupRun } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, mooring, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { DetailPage, Pill } from "../../ui/detail-page.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { ChangedElsewhere, useEdition } from "../../ui/edition.tsx";
import { Failure } from "../../ui/failure.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { MenuItem } from "../../ui/menu-items.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago, WHEN_WIDTH, When } from "../../ui/time.tsx";
import { PolicyForm } from "./form.tsx";
import { Preview } from "./preview.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/backups/policies/$policyId");
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.backupPolicies.pathFilter());

interface DialogProps {
  readonly policy: BackupPolicy;
  readonly onClose: () => void;
}

const Change = ({ policy, onClose }: DialogProps) => {
  const edition = useEdition(policy);
  const { policyId, version } = edition.shown;
  const change = useMutation(
    api.backupPolicies.change.mutationOptions({
      onSuccess: async () => {
        onClose();
        await readAgain();
      },
    }),
  );
  return (
    <Dialog title={text.change} open onClose={onClose}>
      <ChangedElsewhere of={edition} />
      <PolicyForm
        key={version}
        of={edition.shown}
        submit={text.save}
        action={change}
        onSubmit={({ from: _, ...wishes }) => change.mutate({ policyId, version, ...wishes })}
        onCancel={onClose}
      />
    </Dialog>
  );
};

const Remove = ({ policy: { policyId, name }, onClose }: DialogProps) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.backupPolicies.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/backups/policies" });
        queryClient.removeQueries(api.backupPolicies.get.queryFilter({ policyId }));
        queryClient.removeQueries(api.backupPolicies.listRuns.pathFilter());
        await readAgain();
      },
    }),
  );
  return (
    <Confirm title={text.remove} submit={text.remove} open onClose={onClose} typed={name} action={remove} onConfirm={() => remove.mutate({ policyId })}>
      {text.removal}
    </Confirm>
  );
};

const RUNS: readonly Column<BackupRun>[] = [
  { title: text.runs, width: WHEN_WIDTH, phone: true, cell: ({ scheduledFor }) => <When at={scheduledFor} /> },
  { title: text.state, width: "minmax(120px, 0.6fr)", phone: true, cell: ({ status }) => <Status status={status} /> },
  { title: "Backups", phone: true, cell: ({ counts }) => text.counts(counts) },
  { title: "Why", cell: ({ reason }) => reason },
];
const Runs = ({ policyId }: Pick<BackupPolicy, "policyId">) => {
  const list = usePages<BackupRun>((page) => api.backupPolicies.listRuns.queryOptions({ policyId, page, pageSize: PAGE_SIZE }));
  return (
    <Panel
      title={text.runs}
      beside={
        <Link to="/backups" search={{ policyId }}>
          {text.seeRuns}
        </Link>
      }
    >
      <List label={text.runs} columns={RUNS} list={list} rows={3} fill={false} id={({ runId }) => runId} none={text.noRuns} />
    </Panel>
  );
};

const Does = ({ policy }: Pick<DialogProps, "policy">) => {
  const { schedule, timezone, jitterSeconds, missedRun, target, type, destinationId, retention, consistency, timeoutSeconds, verify, beforeUpdates } = policy;
  const wishes = { schedule, timezone, jitterSeconds, missedRun, target, type, destinationId, retention, consistency, timeoutSeconds, verify, beforeUpdates };
  const read = useQuery({ queryKey: ["backup policy", policy.policyId, policy.version], queryFn: () => mooring.backupPolicies.preview.query(wishes) });
  return (
    <Panel title={text.previewPanel}>
      <Loaded read={read}>{(preview) => <Preview of={preview} />}</Loaded>
    </Panel>
  );
};

export const PolicyScreen = () => {
  const { policyId } = route.useParams();
  const may = useMay();
  const [opened, setOpened] = useState<"change" | "remove" | null>(null);
  const read = useQuery(api.backupPolicies.get.queryOptions({ policyId }));
  const policy = read.data;
  const act = useMutation({
    mutationFn: (verb: "run" | "pause" | "resume"): Promise<unknown> => mooring.backupPolicies[verb].mutate({ policyId }),
    onSuccess: readAgain,
  });
  const [mayRun, mayWrite] = [may("backup_policy:run"), may("backup_policy:write")];
  const turn = policy?.enabled === false ? "resume" : "pause";
  const close = (): void => setOpened(null);
  return (
    <DetailPage
      path={[
        <Link key="policies" to="/backups/policies">
          {text.title}
        </Link>,
      ]}
      title={policy?.name ?? text.one}
      pill={policy === undefined ? undefined : <Pill tone={policy.enabled ? "good" : "idle"}>{policy.enabled ? text.active : text.paused}</Pill>}
      facts={
        policy === undefined
          ? []
          : [
              { icon: "time", words: <code>{policy.schedule}</code> },
              { words: policy.timezone },
              ...(policy.nextRunAt === null
                ? []
                : [
                    {
                      words: (
                        <>
                          {text.nextRun} <Ago at={policy.nextRunAt} />
                        </>
                      ),
                    },
                  ]),
            ]
      }
      actions={
        policy === undefined ? undefined : (
          <>
            {mayWrite ? (
              <button type="button" onClick={() => setOpened("change")}>
                {text.change}
              </button>
            ) : null}
            {mayRun ? (
              <button type="button" data-kind="primary" disabled={act.isPending} onClick={() => act.mutate("run")}>
                {text.run}
              </button>
            ) : null}
          </>
        )
      }
      more={
        policy === undefined || !(mayRun || mayWrite) ? undefined : (
          <>
            {mayRun ? <MenuItem onChoose={() => act.mutate(turn)}>{text[turn]}</MenuItem> : null}
            {mayWrite ? <MenuItem onChoose={() => setOpened("remove")}>{text.remove}</MenuItem> : null}
          </>
        )
      }
    >
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            {act.error === null ? null : <Failure key={act.submittedAt} error={act.error} />}
            {found.consecutiveFailures === 0 ? null : (
              <Notice
                tone="bad"
                title={text.failures(found.consecutiveFailures)}
                actions={
                  <Link to="/backups" search={{ policyId, status: "failed" }} data-kind="button" data-size="small">
                    {text.seeRuns}
                  </Link>
                }
              />
            )}
            <Runs policyId={found.policyId} />
            <Does policy={found} />
            {opened === "change" ? <Change policy={found} onClose={close} /> : null}
            {opened === "remove" ? <Remove policy={found} onClose={close} /> : null}
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};
