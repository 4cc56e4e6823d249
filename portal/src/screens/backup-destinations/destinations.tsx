// The places where backups are kept: which devices do not reach one, and how much each holds.
import type { BackupDestinationWithActors as BackupDestination } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { bytesText } from "../../ui/bytes.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { Destination } from "./destination.tsx";
import { DestinationForm } from "./form.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/backups/destinations");

const COLUMNS: readonly Column<BackupDestination>[] = [
  { title: text.name, width: "minmax(110px, 1fr)", phone: true, cell: ({ name }) => <span title={name}>{name}</span> },
  {
    title: text.state,
    width: "minmax(100px, 0.8fr)",
    phone: true,
    cell: ({ lastError, lastCheckedAt, isDefault }) => (
      <span className="row">
        {lastError !== null ? <Status status="failed" word={lastError.reason} /> : lastCheckedAt === null ? null : <Status status="ok" />}
        {isDefault ? <span className="muted">{text.isDefault}</span> : null}
      </span>
    ),
  },
  { title: text.kind, width: "minmax(80px, 0.6fr)", cell: ({ kind }) => <span title={text.kindWord(kind)}>{text.kindWord(kind)}</span> },
  { title: text.used, width: "90px", phone: true, cell: ({ usedBytes }) => bytesText(usedBytes) },
  { title: text.checked, width: AGO_WIDTH, cell: ({ lastCheckedAt }) => <Ago at={lastCheckedAt} /> },
];

const Create = ({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: (destinationId: string) => void }) => {
  const create = useMutation(
    api.backupDestinations.create.mutationOptions({
      onSuccess: async ({ destinationId }) => {
        await queryClient.invalidateQueries(api.backupDestinations.pathFilter());
        onDone(destinationId);
      },
    }),
  );
  return (
    <Dialog title={text.create} open onClose={onClose}>
      <DestinationForm submit={text.create} action={create} onSubmit={(wishes) => create.mutate(wishes)} onCancel={onClose} />
    </Dialog>
  );
};

export const DestinationsScreen = () => {
  const { open: opened } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const [creates, setCreates] = useState(false);
  const list = usePages<BackupDestination>((page) => api.backupDestinations.list.queryOptions({ sort: "name", page, pageSize: PAGE_SIZE }));
  const open = useCallback(
    (destinationId?: string): void =>
      void navigate({ to: "/backups/destinations", search: destinationId === undefined ? {} : { open: destinationId }, replace: true }),
    [navigate],
  );
  const close = useCallback(() => open(), [open]);
  const shown = Array.from({ length: Math.min(list.count, PAGE_SIZE) }, (_, at) => list.row(at)).find((row) => row?.destinationId === opened);
  const create = may("backup_destination:write") ? (
    <button type="button" data-kind="primary" onClick={() => setCreates(true)}>
      {text.create}
    </button>
  ) : undefined;
  return (
    <Page title={text.title} fill actions={list.count > 0 ? create : undefined}>
      <Split
        onClose={close}
        detail={shown === undefined ? null : <Destination key={opened} of={shown} />}
        list={
          <List
            label={text.title}
            columns={COLUMNS}
            list={list}
            rows={4}
            id={({ destinationId }) => destinationId}
            onOpen={({ destinationId }) => open(destinationId)}
            opened={opened}
            none={text.none}
            action={create}
          />
        }
      />
      {creates ? (
        <Create
          onClose={() => setCreates(false)}
          onDone={(destinationId) => {
            setCreates(false);
            open(destinationId);
          }}
        />
      ) : null}
    </Page>
  );
};
