// The revisions of a deployment, what each changed, and the way back to one.
import type { Deployment, DeploymentRevision } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { canDeployment } from "../../parts/app-verbs.ts";
import { changesBetween } from "../../parts/config-changes.ts";
import { readDeployablesAgain } from "../../parts/deployables.tsx";
import { actorText } from "../../parts/text.ts";
import { Diff } from "../../ui/diff.tsx";
import { Failure } from "../../ui/failure.tsx";
import { List } from "../../ui/filtered-list.tsx";
import { Panel } from "../../ui/parts.tsx";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/deployments/$deploymentId");

const contentOf = ({ templateVersion, configuration }: DeploymentRevision) => ({ version: templateVersion, config: configuration });

interface OneProps {
  readonly deployment: Deployment;
  readonly of: DeploymentRevision;
  readonly before: DeploymentRevision | undefined;
  readonly onClose: () => void;
}
const One = ({ deployment: { deploymentId, status, currentRevision, appId }, of, before, onClose }: OneProps) => {
  const { revision } = of;
  const may = useMay();
  const rollBack = useMutation(api.deployments.rollback.mutationOptions({ onSuccess: readDeployablesAgain }));
  const changes = changesBetween(before === undefined ? { version: "", config: {} } : contentOf(before), contentOf(of));
  return (
    <Panel
      title={`${text.revision} ${revision}`}
      beside={
        <button type="button" data-kind="plain" onClick={onClose}>
          {text.close}
        </button>
      }
    >
      {changes.length === 0 ? (
        <p className="muted">{text.same}</p>
      ) : (
        <Diff
          caption={before === undefined ? text.first : text.against(before.revision)}
          rows={changes}
          before={before === undefined ? null : text.before}
          after={text.after}
        />
      )}
      {may("deployment:deploy") && appId !== null && revision !== currentRevision && canDeployment(status, "rollBack") ? (
        <div className="row">
          <button type="button" data-kind="primary" disabled={rollBack.isPending} onClick={() => rollBack.mutate({ deploymentId, toRevision: revision })}>
            {text.rollTo(revision, currentRevision)}
          </button>
        </div>
      ) : null}
      {rollBack.error === null ? null : <Failure error={rollBack.error} />}
    </Panel>
  );
};

const columnsOf = (current: number | null): readonly Column<DeploymentRevision>[] => [
  { title: text.revision, width: "90px", phone: true, cell: ({ revision }) => <strong>{revision}</strong> },
  {
    title: "State",
    width: "110px",
    phone: true,
    cell: ({ revision, rolledBackTo }) =>
      revision === current ? <Status status="active" word={text.isActive} /> : rolledBackTo === null ? null : text.repeats(rolledBackTo),
  },
  { title: "Version", width: "110px", cell: ({ templateVersion }) => templateVersion },
  { title: text.by, cell: ({ createdBy }) => actorText({ id: createdBy, name: null }) },
  { title: text.created, width: AGO_WIDTH, phone: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

export const DeploymentRevisions = ({ of }: { readonly of: Deployment }) => {
  const { deploymentId, currentRevision } = of;
  const { revision: opened } = route.useSearch();
  const navigate = useNavigate();
  const list = usePages<DeploymentRevision>((page) => api.deployments.listRevisions.queryOptions({ deploymentId, page, pageSize: PAGE_SIZE }));
  const open = useCallback(
    (revision?: string): void =>
      void navigate({
        to: "/deployments/$deploymentId",
        params: { deploymentId },
        search: { tab: "revisions", ...(revision === undefined ? {} : { revision }) },
      }),
    [navigate, deploymentId],
  );
  const close = useCallback(() => open(), [open]);
  const columns = useMemo(() => columnsOf(currentRevision), [currentRevision]);
  // Newest first, so the one before it comes after it.
  const at = Array.from({ length: list.count }, (_, index) => index).find((index) => String(list.row(index)?.revision) === opened);
  const shown = at === undefined ? undefined : list.row(at);
  return (
    <Split
      onClose={close}
      detail={at === undefined || shown === undefined ? null : <One key={opened} deployment={of} of={shown} before={list.row(at + 1)} onClose={close} />}
      list={
        <List
          label={text.tabs.revisions}
          columns={columns}
          list={list}
          rows={5}
          fill={false}
          id={({ revision }) => String(revision)}
          onOpen={({ revision }) => open(String(revision))}
          opened={opened}
          none={text.noRevisions}
        />
      }
    />
  );
};
