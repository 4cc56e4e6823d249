// The apps of a device that most need a look, each with the way to its page and to where it answers.
import type { Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { inferOutput } from "@trpc/tanstack-react-query";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { AppStatus } from "../../parts/apps/app-status.tsx";
import { AppTile } from "../../ui/app-tile.tsx";
import { bytesText } from "../../ui/bytes.ts";
import { FailureOf } from "../../ui/failure.tsx";
import { PageIcon } from "../../ui/icon.tsx";
import { Empty, Loaded, Panel, type Read } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./device.module.css";
import { percentText } from "./metrics.ts";
import { text } from "./text.ts";

export type AppRow = inferOutput<typeof api.apps.list>["items"][number];

const Open = ({ app: { name, addresses, status }, isOff }: { readonly app: AppRow; readonly isOff: boolean }) => {
  const page = addresses.find(({ url, reachable }) => /^https?:/.test(url) && reachable !== false);
  if (page === undefined || status !== "running") return null;
  const label = text.openNamed(name);
  const words = (
    <>
      <PageIcon name="open" />
      {text.open}
    </>
  );
  return isOff ? (
    <button type="button" data-size="small" disabled aria-label={label} title={text.notReachable}>
      {words}
    </button>
  ) : (
    <a href={page.url} target="_blank" rel="noreferrer" data-kind="button" data-size="small" aria-label={label}>
      {words}
    </a>
  );
};

/** When each app was last backed up well. Of a device with very many backups, of those within the newest hundred. */
const useBackupAges = (deviceId: string) => {
  const enabled = useMay()("backup:read");
  const read = useQuery({ ...api.backups.list.queryOptions({ deviceId, status: ["completed"], pageSize: 100 }), enabled });
  return { read, backups: read.data === undefined ? null : agesOf(read.data.items) };
};
type Made = inferOutput<typeof api.backups.list>["items"];
const agesOf = (items: Made): ReadonlyMap<string, string> =>
  new Map(items.toReversed().map(({ appId, completedAt, createdAt }) => [appId as string, completedAt ?? createdAt]));

interface RowProps {
  readonly app: AppRow;
  readonly isOff: boolean;
  readonly backups: ReadonlyMap<string, string> | null;
}
const Row = ({ app, isOff, backups }: RowProps) => {
  const { appId, name, status, drift, reported, icon, hue } = app;
  return (
    <tr>
      <td className={css["main"]}>
        <AppTile icon={icon} hue={hue} size="small" />{" "}
        <Link to="/apps/$appId" params={{ appId }}>
          {name}
        </Link>
      </td>
      <td>
        <span className={css["state"]}>
          <AppStatus status={status} drift={drift} />
        </span>
      </td>
      <td className={css["wide"]}>
        <code>{Object.values(reported?.ports ?? {}).join(", ")}</code>
      </td>
      <td className={`${css["wide"]} ${css["number"]}`}>{reported?.cpuPercent == null ? "" : percentText(reported.cpuPercent)}</td>
      <td className={`${css["wide"]} ${css["number"]}`}>{reported?.memoryBytes == null ? "" : bytesText(reported.memoryBytes)}</td>
      {backups === null ? null : (
        <td className={css["wide"]}>{backups.has(appId) ? <Ago at={backups.get(appId)} /> : <span className="muted">{text.none}</span>}</td>
      )}
      <td className={css["last"]}>
        <Open app={app} isOff={isOff} />
      </td>
    </tr>
  );
};

export const AppTable = ({ device, read }: { readonly device: Device; readonly read: Read<readonly AppRow[]> }) => {
  const { deviceId, apps, status } = device;
  const may = useMay();
  const { read: ages, backups } = useBackupAges(deviceId);
  const total = apps?.total ?? 0;
  const all = (
    <Link to="/devices/$deviceId" params={{ deviceId }} search={{ tab: "apps" }}>
      {text.allOf(total)}
    </Link>
  );
  return (
    <Panel title={text.tabs.apps} beside={total === 0 ? undefined : all}>
      <FailureOf read={ages} />
      <Loaded read={read} rows={4}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty action={may("deployment:create") ? <Link to="/catalogue">{text.catalogue}</Link> : undefined}>{text.noApps}</Empty>
          ) : (
            <table className={css["table"]}>
              <thead>
                <tr>
                  <th className={css["main"]}>{text.app}</th>
                  <th>{text.state}</th>
                  <th className={css["wide"]}>{text.port}</th>
                  <th className={`${css["wide"]} ${css["number"]}`}>{text.metric.cpu}</th>
                  <th className={`${css["wide"]} ${css["number"]}`}>{text.metric.memory}</th>
                  {backups === null ? null : <th className={css["wide"]}>{text.lastBackup}</th>}
                  <th className={css["last"]}>
                    <span className="out-of-sight">{text.open}</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map((app) => (
                  <Row key={app.appId} app={app} isOff={status !== "online"} backups={backups} />
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
    </Panel>
  );
};
