// One fleet: its devices, how they are, and what to do with it.
import type { Device, Fleet } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { PickDevices } from "../../parts/selector-field.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Confirm, Form, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Copyable, Facts, Loaded, Page, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";
import { FleetUpdates } from "./updates.tsx";

const route = getRouteApi("/fleets/$fleetId");
const readAgain = () => queryClient.invalidateQueries(api.fleets.pathFilter());

const NAME: Column<Device> = { title: "Name", phone: true, cell: deviceLabel };
const COLUMNS: readonly Column<Device>[] = [
  NAME,
  { title: "Status", width: "120px", phone: true, cell: ({ status }) => <Status status={status} /> },
  { title: "Last seen", width: AGO_WIDTH, cell: ({ lastSeen }) => <Ago at={lastSeen} /> },
];

const Devices = ({ fleet: { fleetId, membership } }: { readonly fleet: Fleet }) => {
  const may = useMay();
  const navigate = useNavigate();
  const list = usePages<Device>((page) => api.fleets.listDevices.queryOptions({ fleetId, sort: "name", page, pageSize: PAGE_SIZE }));
  const add = useMutation(api.fleets.addDevice.mutationOptions({ onSuccess: readAgain }));
  const takeOut = useMutation(api.fleets.removeDevice.mutationOptions({ onSuccess: readAgain }));
  const changes = membership === "static" && may("fleet:write");
  const action: Column<Device> = {
    title: text.change,
    width: "90px",
    cell: ({ deviceId, name }) => (
      <button
        type="button"
        data-kind="plain"
        aria-label={`${text.takeOut} ${name ?? deviceId}`}
        onClick={(event) => {
          event.stopPropagation();
          takeOut.mutate({ fleetId, deviceId });
        }}
      >
        {text.takeOut}
      </button>
    ),
  };
  return (
    <Panel title={text.devices}>
      {changes ? <PickDevices picked={[]} onChange={([deviceId]) => (deviceId === undefined ? undefined : add.mutate({ fleetId, deviceId }))} /> : null}
      {add.error === null && takeOut.error === null ? null : <Failure error={add.error ?? takeOut.error} />}
      <List
        label={text.devices}
        columns={changes ? [...COLUMNS, action] : COLUMNS}
        list={list}
        rows={3}
        fill={false}
        id={({ deviceId }) => deviceId}
        onOpen={({ deviceId }) => void navigate({ to: "/devices/$deviceId", params: { deviceId } })}
        none={text.noDevices}
      />
    </Panel>
  );
};

const Rename = ({ fleet: { fleetId, version, name } }: { readonly fleet: Fleet }) => {
  const update = useMutation(api.fleets.update.mutationOptions({ onSuccess: readAgain }));
  return (
    <Panel title={text.settings}>
      <Form
        submit={text.save}
        busy={update.isPending}
        error={update.error}
        onSubmit={(fields) => update.mutate({ fleetId, version, name: String(fields.get("name")) })}
      >
        <TextField label={text.name} name="name" defaultValue={name} required maxLength={100} />
      </Form>
    </Panel>
  );
};

const Remove = ({ fleet: { fleetId, name }, onClose }: { readonly fleet: Fleet; readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.fleets.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/fleets" });
        queryClient.removeQueries(api.fleets.get.queryFilter({ fleetId }));
        await readAgain();
      },
    }),
  );
  return (
    <Confirm title={text.remove} submit={text.remove} open onClose={onClose} typed={name} action={remove} onConfirm={() => remove.mutate({ fleetId })}>
      {text.removal}
    </Confirm>
  );
};

const Kind = ({ fleet: { membership, selector } }: { readonly fleet: Fleet }) => {
  if (selector === null) return text.kinds[membership];
  const { tags, platform, agentVersion, status } = selector;
  return [text.kinds[membership], ...tags, platform, agentVersion, status === null ? null : text.status[status]].filter((each) => each !== null).join(", ");
};

export const FleetScreen = () => {
  const { fleetId } = route.useParams();
  const may = useMay();
  const [removing, setRemoving] = useState(false);
  const read = useQuery(api.fleets.get.queryOptions({ fleetId }));
  const changes = read.data !== undefined && may("fleet:write");
  const action = changes ? (
    <button type="button" data-kind="danger" onClick={() => setRemoving(true)}>
      {text.remove}
    </button>
  ) : undefined;
  return (
    <Page title={read.data?.name ?? text.one} beside={<Copyable text={fleetId} />} actions={action}>
      <Loaded read={read}>
        {(fleet) => (
          <>
            <Facts
              of={{
                Kind: <Kind fleet={fleet} />,
                [text.count]: fleet.deviceCount,
                [text.created]: <Ago at={fleet.createdAt} />,
                [text.changed]: <Ago at={fleet.updatedAt} />,
              }}
            />
            <Devices fleet={fleet} />
            {may("rollout:read") ? <FleetUpdates fleet={fleet} /> : null}
            {changes ? <Rename fleet={fleet} /> : null}
            {removing ? <Remove fleet={fleet} onClose={() => setRemoving(false)} /> : null}
          </>
        )}
      </Loaded>
    </Page>
  );
};
