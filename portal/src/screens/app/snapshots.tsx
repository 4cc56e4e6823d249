// The configurations of an app that were kept, and the way back to one.
import type { AppDetails, AppSnapshotWithActors as Snapshot } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { readDeployablesAgain } from "../../parts/apps/deployables.ts";
import { changesBetween } from "../../parts/config-changes.ts";
import { actorText } from "../../parts/text.ts";
import { Form, TextField } from "../../ui/dialog.tsx";
import { Diff } from "../../ui/diff.tsx";
import { Failure } from "../../ui/failure.tsx";
import { type Column, Table } from "../../ui/list/table.tsx";
import { Empty, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Split } from "../../ui/split.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { RollBack, useMayRollBack } from "./roll-back.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/apps/$appId");

const byOf = ({ automatic, actor }: Snapshot): string => (automatic ? text.byItself : actorText(actor));

const COLUMNS: readonly Column<Snapshot>[] = [
  { title: "Taken", width: AGO_WIDTH, phone: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
  { title: "Revision", width: "90px", phone: true, cell: ({ revision }) => revision },
  { title: "Version", width: "110px", cell: ({ templateVersion }) => templateVersion },
  { title: "By", cell: byOf },
  { title: text.note, phone: true, cell: ({ metadata }) => metadata["note"] },
];

const Take = ({ appId }: { readonly appId: string }) => {
  const take = useMutation(api.apps.createSnapshot.mutationOptions({ onSuccess: readDeployablesAgain }));
  const send = (fields: FormData): void => {
    const note = String(fields.get("note")).trim();
    take.mutate({ appId, metadata: note === "" ? {} : { note } });
  };
  return (
    <Panel title={text.takeSnapshot}>
      <Form key={take.data?.snapshotId} submit={text.takeSnapshot} busy={take.isPending} error={take.error} onSubmit={send}>
        <TextField label={text.note} name="note" maxLength={200} />
      </Form>
    </Panel>
  );
};

interface OneProps {
  readonly app: AppDetails;
  readonly of: Snapshot;
  readonly onClose: () => void;
}
const One = ({ app, of: snapshot, onClose }: OneProps) => {
  const { appId, snapshotId, revision, templateVersion, config } = snapshot;
  const may = useMay();
  const [isAsking, setAsking] = useState(false);
  const mayRollBack = useMayRollBack(app, true);
  const remove = useMutation(
    api.apps.removeSnapshot.mutationOptions({
      onSuccess: () => {
        onClose();
        return readDeployablesAgain();
      },
    }),
  );
  const changes = changesBetween({ version: templateVersion, config }, { version: app.templateVersion, config: app.config });
  return (
    <Panel
      title={text.snapshot}
      beside={
        <button type="button" data-kind="plain" onClick={onClose}>
          {text.close}
        </button>
      }
    >
      <Facts of={{ [text.revision]: revision, By: byOf(snapshot), Taken: <Ago at={snapshot.createdAt} />, ...snapshot.metadata }} />
      {changes.length === 0 ? <p className="muted">{text.same}</p> : <Diff caption={text.sinceSnapshot} rows={changes} before={text.before} after={text.now} />}
      <div className="row">
        {mayRollBack ? (
          <button type="button" onClick={() => setAsking(true)}>
            {text.rollBackToIt}
          </button>
        ) : null}
        {may("app:update") ? (
          <button type="button" data-kind="danger" disabled={remove.isPending} onClick={() => remove.mutate({ appId, snapshotId })}>
            {text.deleteSnapshot}
          </button>
        ) : null}
      </div>
      {remove.error === null ? null : <Failure error={remove.error} />}
      {isAsking ? <RollBack app={app} to={{ revision, snapshotId, version: templateVersion, config }} onClose={() => setAsking(false)} /> : null}
    </Panel>
  );
};

export const AppSnapshots = ({ app }: { readonly app: AppDetails }) => {
  const { appId, deploymentId } = app;
  const { snapshot } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const read = useQuery(api.apps.listSnapshots.queryOptions({ appId }));
  const open = useCallback(
    (snapshotId?: string): void =>
      void navigate({ to: "/apps/$appId", params: { appId }, search: { tab: "history", ...(snapshotId === undefined ? {} : { snapshot: snapshotId }) } }),
    [navigate, appId],
  );
  const close = useCallback(() => open(), [open]);
  // The automatic ones of a deployment's app are its revisions.
  const items = (read.data?.items ?? []).filter(({ automatic }) => deploymentId === null || !automatic);
  const shown = items.find(({ snapshotId }) => snapshotId === snapshot);
  return (
    <>
      {may("app:update") ? <Take appId={appId} /> : null}
      <Split
        onClose={close}
        detail={shown === undefined ? null : <One key={shown.snapshotId} app={app} of={shown} onClose={close} />}
        list={
          <Loaded read={read} rows={5}>
            {() =>
              items.length === 0 ? (
                <Empty>{text.noSnapshots}</Empty>
              ) : (
                <Table
                  label={text.snapshots}
                  columns={COLUMNS}
                  count={items.length}
                  row={(index) => items[index]}
                  id={({ snapshotId }) => snapshotId}
                  onOpen={({ snapshotId }) => open(snapshotId)}
                  opened={snapshot}
                />
              )
            }
          </Loaded>
        }
      />
    </>
  );
};
