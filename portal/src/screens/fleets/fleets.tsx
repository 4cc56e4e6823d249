// The list of fleets, and the form for a new one.
import type { Fleet } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { PickDevices, PickTags } from "../../parts/selector-field.tsx";
import { DEVICE_VIEWS, ViewTabs } from "../../parts/views.tsx";
import { Dialog, Field, Form, TextField } from "../../ui/dialog.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const COLUMNS: readonly Column<Fleet>[] = [
  { title: "Name", phone: true, cell: ({ name }) => name },
  { title: "Kind", width: "160px", cell: ({ membership }) => text.kinds[membership] },
  { title: text.count, width: "90px", phone: true, cell: ({ deviceCount }) => deviceCount },
  { title: text.created, width: AGO_WIDTH, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

const orNull = (fields: FormData, name: string): string | null => String(fields.get(name) ?? "").trim() || null;

const Create = ({ onClose }: { readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const [membership, setMembership] = useState<Fleet["membership"]>("static");
  const [deviceIds, setDeviceIds] = useState<string[]>([]);
  const [tags, setTags] = useState<string[]>([]);
  const create = useMutation(
    api.fleets.create.mutationOptions({
      onSuccess: async ({ fleetId }) => {
        await queryClient.invalidateQueries(api.fleets.pathFilter());
        await navigate({ to: "/fleets/$fleetId", params: { fleetId } });
      },
    }),
  );
  const send = (fields: FormData): void => {
    const name = String(fields.get("name"));
    const selector = { tags, platform: orNull(fields, "platform"), agentVersion: orNull(fields, "agentVersion") };
    create.mutate(membership === "static" ? { name, deviceIds } : { name, selector });
  };
  return (
    <Dialog title={text.create} open onClose={onClose}>
      <Form submit={text.create} busy={create.isPending} error={create.error} onCancel={onClose} onSubmit={send}>
        <TextField label={text.name} name="name" required maxLength={100} />
        <Field label={text.kind}>
          {(id) => (
            <select id={id} value={membership} onChange={({ target }) => setMembership(target.value === "dynamic" ? "dynamic" : "static")}>
              <option value="static">{text.kinds.static}</option>
              <option value="dynamic">{text.kinds.dynamic}</option>
            </select>
          )}
        </Field>
        {membership === "static" ? (
          <PickDevices picked={deviceIds} onChange={setDeviceIds} />
        ) : (
          <>
            <PickTags picked={tags} onChange={setTags} hint={text.tags} />
            <TextField label={text.platform} name="platform" hint={text.any} maxLength={100} />
            <TextField label={text.agentVersion} name="agentVersion" hint={text.any} maxLength={100} />
          </>
        )}
      </Form>
    </Dialog>
  );
};

export const FleetsScreen = () => {
  const may = useMay();
  const navigate = useNavigate();
  const [creating, setCreating] = useState(false);
  const list = usePages<Fleet>((page) => api.fleets.list.queryOptions({ sort: "name", page, pageSize: PAGE_SIZE }));
  const open = ({ fleetId }: Fleet): void => void navigate({ to: "/fleets/$fleetId", params: { fleetId } });
  const action = may("fleet:write") ? (
    <button type="button" data-kind="primary" onClick={() => setCreating(true)}>
      {text.create}
    </button>
  ) : undefined;
  return (
    <Page title={text.title} tabs={<ViewTabs of={DEVICE_VIEWS} at="/fleets" />} actions={action} fill>
      <List label={text.title} columns={COLUMNS} list={list} id={({ fleetId }) => fleetId} onOpen={open} none={text.none} />
      {creating ? <Create onClose={() => setCreating(false)} /> : null}
    </Page>
  );
};
