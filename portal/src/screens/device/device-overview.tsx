// The overview of a device: its problems first, then figures, apps and open commands; at the right what happened, and the details.
import type { App, Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Beside } from "../../ui/detail-page.tsx";
import { Copyable, Facts, Panel } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import { Activity } from "./activity.tsx";
import { type AppRow, AppTable } from "./app-table.tsx";
import css from "./device.module.css";
import { DeviceFigures } from "./device-figures.tsx";
import { DeviceProblems } from "./device-problems.tsx";
import { OpenCommands } from "./open-commands.tsx";
import { text } from "./text.ts";

/** The most apps that are shown of hundreds, those in error first. */
const SHOWN = 8;

/** The apps that most need a look. Only a device with failed apps has a second read. */
const useApps = ({ deviceId, apps }: Device) => {
  const enabled = useMay()("app:read");
  const first = useQuery({ ...api.apps.list.queryOptions({ deviceId, sort: "name", pageSize: SHOWN }), enabled });
  const failed = useQuery({
    ...api.apps.list.queryOptions({ deviceId, status: ["error"], sort: "name", pageSize: SHOWN }),
    enabled: enabled && (apps?.error ?? 0) > 0,
  });
  const bad: readonly AppRow[] = (apps?.error ?? 0) > 0 ? (failed.data?.items ?? []) : [];
  const known = new Map([...bad, ...(first.data?.items ?? [])].map((app) => [app.appId as string, app]));
  const rows = [...known.values()].slice(0, SHOWN);
  return { failed: bad as readonly App[], read: { ...first, error: first.error ?? failed.error, data: first.data === undefined ? undefined : rows } };
};

const Details = ({ device }: { readonly device: Device }) => {
  const { deviceId, connection, lastSeen, hostname, addresses, platform, arch, osVersion, agentVersion, model, createdAt } = device;
  return (
    <Panel title={text.details}>
      <div className={css["details"]}>
        <Facts
          of={{
            Link: text.links[connection.connectivity],
            Connected: connection.since === undefined ? null : <Ago at={connection.since} />,
            Node: connection.nodeId === undefined ? null : <span className="mono">{connection.nodeId}</span>,
            "Last seen": <Ago at={lastSeen} />,
            Hostname: hostname === undefined ? null : <span className="mono">{hostname}</span>,
            Addresses: addresses.length === 0 ? null : <span className="mono">{addresses.map(({ address }) => address).join(", ")}</span>,
            System: [platform, arch, osVersion].filter(Boolean).join(" / "),
            Model: model,
            Agent: agentVersion,
            Paired: <Ago at={createdAt} />,
            Id: <Copyable text={deviceId} />,
          }}
        />
      </div>
    </Panel>
  );
};

export const DeviceOverview = ({ device }: { readonly device: Device }) => {
  const may = useMay();
  const { failed, read } = useApps(device);
  return (
    <>
      <DeviceProblems device={device} failed={failed} />
      <DeviceFigures device={device} />
      <Beside
        main={
          <>
            {may("app:read") ? <AppTable device={device} read={read} /> : null}
            {may("command:read") ? <OpenCommands deviceId={device.deviceId} /> : null}
          </>
        }
        side={
          <>
            {may("event:read") || may("command:read") ? <Activity deviceId={device.deviceId} /> : null}
            <Details device={device} />
          </>
        }
      />
    </>
  );
};
