// The channels that tell of alerts, and the one that is open.
import type { AlertChannel } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Copyable, Facts, Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { CreateChannel, EditChannel } from "./channel-form.tsx";
import { Test } from "./channel-test.tsx";
import { NEW, TabList } from "./tab-list.tsx";
import { text } from "./text.ts";

const State = ({ of: { enabled, lastError } }: { readonly of: AlertChannel }) => {
  if (!enabled) return <Status status="off" word={text.off} />;
  return lastError === null ? <Status status="active" word={text.on} /> : <Status status="failed" word={text.failing} />;
};

const COLUMNS: readonly Column<AlertChannel>[] = [
  { title: text.name, width: "minmax(100px, 2fr)", phone: true, cell: ({ name }) => name },
  { title: text.type, width: "120px", phone: true, cell: ({ type }) => text.types[type] },
  { title: text.address, width: "minmax(100px, 3fr)", cell: ({ address }) => <span className="mono muted">{address}</span> },
  { title: "State", width: "82px", phone: true, cell: (channel) => <State of={channel} /> },
  { title: text.lastSent, width: AGO_WIDTH, cell: ({ lastSentAt }) => <Ago at={lastSentAt} /> },
];

const OneChannel = ({ channelId, onClose }: { readonly channelId: string; readonly onClose: () => void }) => {
  const may = useMay();
  const read = useQuery(api.alerts.getChannel.queryOptions({ channelId }));
  return (
    <Dialog title={read.data?.name ?? "Channel"} open onClose={onClose}>
      <Loaded read={read} rows={6}>
        {(channel) => (
          <>
            <Facts
              of={{
                State: <State of={channel} />,
                [text.type]: text.types[channel.type],
                [text.address]: <span className="mono">{channel.address}</span>,
                [text.lastSent]: <Ago at={channel.lastSentAt} />,
                [text.lastFailed]:
                  channel.lastError === null ? null : (
                    <>
                      <Ago at={channel.lastErrorAt} />: {channel.lastError}
                    </>
                  ),
                Id: <Copyable text={channel.channelId} />,
              }}
            />
            {may("alert_rule:write") ? (
              <>
                <Test channelId={channelId} />
                <EditChannel stored={channel} onClose={onClose} />
              </>
            ) : null}
          </>
        )}
      </Loaded>
    </Dialog>
  );
};

export const Channels = () => {
  const may = useMay();
  const list = usePages<AlertChannel>((page) => api.alerts.listChannels.queryOptions({ sort: "name", page, pageSize: PAGE_SIZE }));
  return (
    <TabList
      tab="channels"
      list={list}
      columns={COLUMNS}
      id={({ channelId }) => channelId}
      create={may("alert_rule:write") ? text.createChannel : undefined}
      none={text.noChannels}
      dialog={(open, onClose) => (open === NEW ? <CreateChannel onClose={onClose} /> : <OneChannel key={open} channelId={open} onClose={onClose} />)}
    />
  );
};
