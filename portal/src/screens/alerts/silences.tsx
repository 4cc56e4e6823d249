// The silences: what keeps quiet, why and until when.
import type { AlertSilence } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { Copyable, Empty, Facts, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Ago, exactTime } from "../../ui/time.tsx";
import { CreateSilence } from "./create-silence.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/alerts");
/** Instead of an id: a silence that does not exist yet. */
const NEW = "new";

const matchersText = ({ matchers }: AlertSilence): string =>
  matchers.map(({ name, value, isRegex }) => `${text.matcherNames[name]} ${text.isWord(isRegex)} ${value}`).join(", ");
const isOver = ({ endsAt }: AlertSilence): boolean => Date.parse(endsAt) <= Date.now();

const State = ({ of }: { readonly of: AlertSilence }) => {
  if (of.active) return <Status status="active" word={text.active} />;
  return isOver(of) ? <Status status="over" word={text.over} /> : <Status status="pending" word={text.planned} />;
};

const COLUMNS: readonly Column<AlertSilence>[] = [
  { title: text.matchers, width: "minmax(120px, 3fr)", phone: true, cell: matchersText },
  { title: text.reason, width: "minmax(80px, 2fr)", cell: ({ comment }) => comment },
  { title: "State", width: "92px", phone: true, cell: (silence) => <State of={silence} /> },
  { title: text.ends, width: "100px", phone: true, cell: ({ endsAt }) => <Ago at={endsAt} /> },
];

const Remove = ({ of, onBack, onClose }: { readonly of: AlertSilence; readonly onBack: () => void; readonly onClose: () => void }) => {
  const remove = useMutation(
    api.alerts.removeSilence.mutationOptions({
      onSuccess: async () => {
        onClose();
        await queryClient.invalidateQueries(api.alerts.pathFilter());
      },
    }),
  );
  return (
    <Confirm title={text.endTitle} open onClose={onBack} submit={text.endSilence} action={remove} onConfirm={() => remove.mutate({ silenceId: of.silenceId })}>
      {text.endNote}
    </Confirm>
  );
};

const OneSilence = ({ silenceId, onClose }: { readonly silenceId: string; readonly onClose: () => void }) => {
  const may = useMay();
  const [removing, setRemoving] = useState(false);
  const read = useQuery(api.alerts.getSilence.queryOptions({ silenceId }));
  if (removing && read.data !== undefined) return <Remove of={read.data} onBack={() => setRemoving(false)} onClose={onClose} />;
  return (
    <Dialog title="Silence" open onClose={onClose}>
      <Loaded read={read} rows={4}>
        {(silence) => (
          <>
            <p>{matchersText(silence)}</p>
            <Facts
              of={{
                State: <State of={silence} />,
                [text.reason]: silence.comment,
                [text.starts]: exactTime(silence.startsAt),
                [text.ends]: exactTime(silence.endsAt),
                "Created by": silence.createdBy,
                Id: <Copyable text={silence.silenceId} />,
              }}
            />
            {may("alert:silence") && !isOver(silence) ? (
              <div className="row">
                <button type="button" data-kind="danger" onClick={() => setRemoving(true)}>
                  {text.endSilence}
                </button>
              </div>
            ) : null}
          </>
        )}
      </Loaded>
    </Dialog>
  );
};

export const Silences = () => {
  const { open } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const list = usePages<AlertSilence>((page) => api.alerts.listSilences.queryOptions({ page, pageSize: PAGE_SIZE }));
  const show = (silenceId?: string): void =>
    void navigate({ to: "/alerts", search: { tab: "silences", ...(silenceId === undefined ? {} : { open: silenceId }) }, replace: true });
  const create = may("alert:silence") ? (
    <button type="button" data-kind="primary" onClick={() => show(NEW)}>
      {text.createSilence}
    </button>
  ) : undefined;
  return (
    <>
      {list.count > 0 && create !== undefined ? <div>{create}</div> : null}
      <Loaded read={list.read} rows={6}>
        {() =>
          list.count === 0 ? (
            <Empty action={create}>{text.noSilences}</Empty>
          ) : (
            <Table
              label={text.tabs.silences}
              columns={COLUMNS}
              {...list}
              id={({ silenceId }) => silenceId}
              opened={open}
              onOpen={({ silenceId }) => show(silenceId)}
              fill
            />
          )
        }
      </Loaded>
      {open === undefined ? null : open === NEW ? <CreateSilence onClose={() => show()} /> : <OneSilence key={open} silenceId={open} onClose={() => show()} />}
    </>
  );
};
