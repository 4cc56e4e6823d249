// What is announced to everybody who uses the installation, now, later or before, and the way to announce something.
import type { ManagedAnnouncement } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { Confirm, Dialog, Field, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { type Column, Table } from "../../ui/list/table.tsx";
import { Empty, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const words = text.announcements;
const readAgain = () =>
  Promise.all([queryClient.invalidateQueries(api.announcements.pathFilter()), queryClient.invalidateQueries(api.general.me.pathFilter())]);

const State = ({ of: { startsAt, endsAt } }: { readonly of: ManagedAnnouncement }) => {
  const now = gatewayNow();
  if (endsAt !== null && Date.parse(endsAt) <= now) return <Status status="over" word={words.over} />;
  return Date.parse(startsAt) <= now ? <Status status="active" word={words.shown} /> : <Status status="pending" word={words.planned} />;
};

const columnsOf = (remove: (announcement: ManagedAnnouncement) => void): readonly Column<ManagedAnnouncement>[] => [
  { title: words.heading, width: "minmax(120px, 3fr)", phone: true, cell: ({ title, body }) => <span title={body}>{title}</span> },
  { title: words.severity, width: "90px", cell: ({ severity }) => words.severities[severity] },
  { title: words.state, width: "92px", phone: true, cell: (announcement) => <State of={announcement} /> },
  { title: words.begins, width: AGO_WIDTH, cell: ({ startsAt }) => <Ago at={startsAt} /> },
  { title: words.ends, width: AGO_WIDTH, cell: ({ endsAt }) => (endsAt === null ? words.open : <Ago at={endsAt} />) },
  {
    title: text.node.action,
    width: "84px",
    phone: true,
    cell: (announcement) => (
      <button type="button" data-kind="plain" onClick={() => remove(announcement)} aria-label={`${words.remove}: ${announcement.title}`}>
        {words.remove}
      </button>
    ),
  },
];

const timeOf = (fields: FormData, name: string): string | undefined => {
  const given = String(fields.get(name) ?? "");
  return given === "" ? undefined : new Date(given).toISOString();
};

const Create = ({ onClose }: { readonly onClose: () => void }) => {
  const create = useMutation(
    api.announcements.create.mutationOptions({
      onSuccess: async () => {
        await readAgain();
        onClose();
      },
    }),
  );
  const send = (fields: FormData): void =>
    create.mutate({
      title: String(fields.get("title")),
      body: String(fields.get("body")),
      severity: String(fields.get("severity")) as ManagedAnnouncement["severity"], // as: the options say so
      startsAt: timeOf(fields, "startsAt"),
      endsAt: timeOf(fields, "endsAt") ?? null,
    });
  return (
    <Dialog title={words.create} open onClose={onClose}>
      <Form submit={words.announce} busy={create.isPending} error={create.error} onSubmit={send} onCancel={onClose}>
        <TextField label={words.heading} name="title" required maxLength={120} />
        <Field label={words.body}>{(id, hintId) => <textarea id={id} aria-describedby={hintId} name="body" rows={3} maxLength={2_000} />}</Field>
        <SelectField label={words.severity} name="severity" options={Object.entries(words.severities)} />
        <TextField label={words.begins} name="startsAt" type="datetime-local" hint={words.now} />
        <TextField label={words.ends} name="endsAt" type="datetime-local" hint={words.untilDeleted} />
      </Form>
    </Dialog>
  );
};

const Remove = ({ of, onClose }: { readonly of: ManagedAnnouncement; readonly onClose: () => void }) => {
  const remove = useMutation(
    api.announcements.remove.mutationOptions({
      onSuccess: async () => {
        onClose();
        await readAgain();
      },
    }),
  );
  return (
    <Confirm
      title={words.removeTitle(of.title)}
      open
      onClose={onClose}
      submit={words.remove}
      action={remove}
      onConfirm={() => remove.mutate({ announcementId: of.announcementId })}
    >
      {words.removeEffect}
    </Confirm>
  );
};

export const AnnouncementList = () => {
  const read = useQuery(api.announcements.list.queryOptions({}));
  const [creates, setCreates] = useState(false);
  const [removed, setRemoved] = useState<ManagedAnnouncement | null>(null);
  const [columns] = useState(() => columnsOf(setRemoved));
  const button = (
    <button type="button" data-kind="primary" onClick={() => setCreates(true)}>
      {words.create}
    </button>
  );
  return (
    <>
      <Loaded read={read} rows={4}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty action={button}>{words.none}</Empty>
          ) : (
            <>
              <div>{button}</div>
              <Table
                label={text.tabs.announcements}
                columns={columns}
                count={items.length}
                row={(index) => items[index]}
                id={({ announcementId }) => announcementId}
              />
            </>
          )
        }
      </Loaded>
      {creates ? <Create onClose={() => setCreates(false)} /> : null}
      {removed === null ? null : <Remove of={removed} onClose={() => setRemoved(null)} />}
    </>
  );
};
