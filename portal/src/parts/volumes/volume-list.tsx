// Volumes in a list, and the open one beside it. Only one that belongs to no app can be removed.
import type { VolumeInfo } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useCallback, useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import type { Listed } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { bytesText } from "../../ui/bytes.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Facts, Panel } from "../../ui/parts.tsx";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./volume-text.ts";

const keyOf = ({ deviceId, name }: VolumeInfo): string => `${deviceId} ${name}`;
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.volumes.pathFilter());

const State = ({ of: { status, orphaned, inUse } }: { readonly of: VolumeInfo }) => {
  if (status === "removing") return <Status status="running" word={text.removing} />;
  return orphaned ? <Status status="pending" word={text.orphaned} /> : <Status status="ok" word={inUse ? text.inUse : text.ofApp} />;
};
const sizeOf = ({ size, sizeState }: VolumeInfo): string => (size === undefined ? text.sizes[sizeState] : bytesText(size));

const COLUMNS: readonly Column<VolumeInfo>[] = [
  { title: text.name, phone: true, cell: ({ name }) => <span title={name}>{name}</span> },
  { title: text.state, width: "minmax(130px, 0.6fr)", phone: true, cell: (volume) => <State of={volume} /> },
  { title: text.size, width: "minmax(90px, 0.4fr)", phone: true, cell: (volume) => <span title={sizeOf(volume)}>{sizeOf(volume)}</span> },
  { title: text.seen, width: AGO_WIDTH, cell: ({ lastSeenAt }) => <Ago at={lastSeenAt} /> },
];

const Volume = ({ of, onClose }: { readonly of: VolumeInfo; readonly onClose: () => void }) => {
  const { deviceId, name, appId, driver, mountpoint, files, labels, orphaned, status, firstSeenAt } = of;
  const may = useMay();
  const [removes, setRemoves] = useState(false);
  const remove = useMutation(
    api.volumes.remove.mutationOptions({
      onSuccess: async () => {
        setRemoves(false);
        onClose();
        await readAgain();
      },
    }),
  );
  return (
    <Panel title={name}>
      <Facts
        of={{
          [text.state]: <State of={of} />,
          [text.size]: sizeOf(of),
          [text.files]: files,
          [text.device]: (
            <Link to="/devices/$deviceId" params={{ deviceId }} search={{ tab: "volumes" }}>
              {text.device}
            </Link>
          ),
          [text.app]:
            appId === null || orphaned ? null : (
              <Link to="/apps/$appId" params={{ appId }}>
                {text.app}
              </Link>
            ),
          [text.driver]: driver,
          [text.folder]: <span className="mono">{mountpoint}</span>,
          [text.labels]: Object.entries(labels)
            .map(([label, value]) => `${label}=${value}`)
            .join(", "),
          [text.first]: <Ago at={firstSeenAt} />,
        }}
      />
      {orphaned && status === "present" && may("volume:delete") ? (
        <button type="button" data-kind="danger" onClick={() => setRemoves(true)}>
          {text.remove}
        </button>
      ) : null}
      {removes ? (
        <Confirm
          title={`${text.remove}?`}
          submit={text.remove}
          open
          onClose={() => setRemoves(false)}
          typed={name}
          action={remove}
          onConfirm={() => remove.mutate({ deviceId, name, confirm: name })}
        >
          {text.removal}
        </Confirm>
      ) : null}
    </Panel>
  );
};

interface VolumeListProps {
  readonly list: Listed<VolumeInfo>;
  readonly deviceOf?: (deviceId: string) => string;
  readonly none: string;
  readonly action?: ReactNode;
}
export const VolumeList = ({ list, deviceOf, none, action }: VolumeListProps) => {
  const [opened, setOpened] = useState<VolumeInfo | null>(null);
  const close = useCallback(() => setOpened(null), []);
  const [name = COLUMNS[0], state, ...rest] = COLUMNS;
  const device: Column<VolumeInfo> = { title: text.device, cell: ({ deviceId }) => deviceOf?.(deviceId) ?? "" };
  const columns = deviceOf === undefined ? COLUMNS : [name, state, device, ...rest].filter((column) => column !== undefined);
  return (
    <Split
      onClose={close}
      detail={opened === null ? null : <Volume key={keyOf(opened)} of={opened} onClose={close} />}
      list={
        <List
          label={text.title}
          columns={columns}
          list={list}
          rows={6}
          id={keyOf}
          onOpen={setOpened}
          opened={opened === null ? undefined : keyOf(opened)}
          none={none}
          action={action}
        />
      }
    />
  );
};

export const LookAgain = ({ deviceId }: { readonly deviceId: string }) => {
  const may = useMay();
  const refresh = useMutation(api.volumes.refresh.mutationOptions({ onSuccess: readAgain }));
  if (!may("volume:scan")) return null;
  return (
    <>
      {refresh.error === null ? null : <Failure key={refresh.submittedAt} error={refresh.error} />}
      <div className="row">
        <button type="button" disabled={refresh.isPending} onClick={() => refresh.mutate({ deviceId })}>
          {text.look}
        </button>
        {refresh.isSuccess ? <span role="status">{text.looks}</span> : null}
      </div>
    </>
  );
};
