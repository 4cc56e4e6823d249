// The silences: what keeps quiet, why and until when.
import type { AlertSilence } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Copyable, Facts, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago, exactTime } from "../../ui/time.tsx";
import { CreateSilence } from "./create-silence.tsx";
import { NEW, TabList } from "./tab-list.tsx";
import { text } from "./text.ts";

const matchersText = ({ matchers }: AlertSilence): string =>
  matchers.map(({ name, value, isRegex }) => `${text.matcherNames[name]} ${text.isWord(isRegex)} ${value}`).join(", ");
const isOver = ({ endsAt }: AlertSilence): boolean => Date.parse(endsAt) <= gatewayNow();

const State = ({ of }: { readonly of: AlertSilence }) => {
  if (of.active) return <Status status="active" word={text.active} />;
  return isOver(of) ? <Status status="over" word={text.over} /> : <Status status="pending" word={text.planned} />;
};

const COLUMNS: readonly Column<AlertSilence>[] = [
  { title: text.matchers, width: "minmax(120px, 3fr)", phone: true, cell: matchersText },
  { title: text.reason, width: "minmax(80px, 2fr)", cell: ({ comment }) => comment },
  { title: "State", width: "92px", phone: true, cell: (silence) => <State of={silence} /> },
  { title: text.ends, width: AGO_WIDTH, phone: true, cell: ({ endsAt }) => <Ago at={endsAt} /> },
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
  const may = useMay();
  const list = usePages<AlertSilence>((page) => api.alerts.listSilences.queryOptions({ page, pageSize: PAGE_SIZE }));
  return (
    <TabList
      tab="silences"
      list={list}
      columns={COLUMNS}
      id={({ silenceId }) => silenceId}
      create={may("alert:silence") ? text.createSilence : undefined}
      none={text.noSilences}
      dialog={(open, onClose) => (open === NEW ? <CreateSilence onClose={onClose} /> : <OneSilence key={open} silenceId={open} onClose={onClose} />)}
    />
  );
};
