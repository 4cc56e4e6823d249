// One device: what is wrong with it, what runs on it, what it does, and everything that people do with it.
import type { Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { BackupList } from "../../parts/backups/backup-list.tsx";
import { Composer } from "../../parts/composer.tsx";
import { DeviceNetwork } from "../../parts/network/device-network.tsx";
import { text as commandText } from "../../parts/text.ts";
import { numbers } from "../../ui/count.ts";
import { DetailPage, type PageFact, Pill } from "../../ui/detail-page.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Icon } from "../../ui/icon.tsx";
import { useKeys } from "../../ui/keyboard.ts";
import { Loaded } from "../../ui/parts.tsx";
import { toneOf } from "../../ui/status.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Ago } from "../../ui/time.tsx";
import css from "./device.module.css";
import { DeviceApps } from "./device-apps.tsx";
import { DeviceCommands } from "./device-commands.tsx";
import { DeviceMenu, useMayChange } from "./device-menu.tsx";
import { DeviceMetrics } from "./device-metrics.tsx";
import { DeviceOverview } from "./device-overview.tsx";
import { DeviceSettings } from "./device-settings.tsx";
import { DeviceVolumes } from "./device-volumes.tsx";
import { TABS, type Tab } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/devices/$deviceId");

const useTabs = (): readonly Tab[] => {
  const may = useMay();
  const mayChange = useMayChange();
  const shown: Readonly<Record<Tab, boolean>> = {
    overview: true,
    apps: may("app:read"),
    commands: may("command:read"),
    metrics: true,
    backups: may("backup:read"),
    volumes: may("volume:read"),
    network: may("tunnel:read") || may("mesh:read"),
    settings: mayChange,
  };
  return TABS.filter((tab) => shown[tab]);
};

/** The composer, opened by its button, by `c`, or with a first type. */
const useComposer = () => {
  const may = useMay();
  const [first, setFirst] = useState<string | null>(null);
  const maySend = may("device:command");
  const compose = useCallback((type = "") => (maySend ? setFirst(type) : undefined), [maySend]);
  return { maySend, first, compose, close: () => setFirst(null) };
};

const useDeviceKeys = (compose: () => void): void => {
  const { command } = route.useSearch();
  const navigate = useNavigate();
  const keys = useMemo(
    () => ({
      c: compose,
      // With an open command Escape closes that first.
      ...(command === undefined ? { Escape: () => void navigate({ to: "/devices" }) } : {}),
    }),
    [compose, command, navigate],
  );
  useKeys(keys);
};

const Maintenance = ({ until }: { readonly until: string | null }) =>
  until === null ? (
    text.maintenance
  ) : (
    <>
      {text.maintenance}, {text.ends} <Ago at={until} />
    </>
  );

const factsOf = ({ lastSeen, osVersion, platform, arch, addresses, agentVersion, tags, maintenance }: Device): readonly PageFact[] => {
  const [address] = addresses;
  const system = [osVersion ?? platform, arch].filter(Boolean).join(", ");
  return [
    {
      icon: "time",
      words: (
        <>
          {text.seen} <Ago at={lastSeen} />
        </>
      ),
    },
    ...(maintenance?.enabled === true ? [{ icon: "info" as const, words: <Maintenance until={maintenance.until} /> }] : []),
    ...(system === "" ? [] : [{ icon: "system" as const, words: system }]),
    ...(address === undefined ? [] : [{ icon: "address" as const, words: address.address }]),
    ...(agentVersion === undefined ? [] : [{ icon: "agent" as const, words: text.agent(agentVersion) }]),
    ...(tags.length === 0
      ? []
      : [
          {
            icon: "tag" as const,
            words: (
              <span className={css["tags"]}>
                {tags.map((tag) => (
                  <span key={tag}>{tag}</span>
                ))}
              </span>
            ),
          },
        ]),
  ];
};

const Part = ({ tab, device, onPing }: { readonly tab: Tab; readonly device: Device; readonly onPing: (() => void) | null }) => {
  if (tab === "overview") return <DeviceOverview device={device} />;
  if (tab === "apps") return <DeviceApps deviceId={device.deviceId} />;
  if (tab === "metrics") return <DeviceMetrics device={device} />;
  if (tab === "backups") return <BackupList of={{ deviceId: device.deviceId }} />;
  if (tab === "volumes") return <DeviceVolumes deviceId={device.deviceId} />;
  if (tab === "network") return <DeviceNetwork deviceId={device.deviceId} />;
  return tab === "settings" ? <DeviceSettings device={device} /> : <DeviceCommands onPing={onPing} />;
};

export const DeviceScreen = () => {
  const { deviceId } = route.useParams();
  const search = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const mayChange = useMayChange();
  const tabs = useTabs();
  const { maySend, first, compose, close } = useComposer();
  // A heartbeat has no event.
  const read = useQuery({ ...api.devices.get.queryOptions({ deviceId }), refetchInterval: 15_000 });
  const device = read.data;
  const wanted = search.tab ?? (search.command === undefined ? "overview" : "commands");
  const tab = tabs.find((each) => each === wanted) ?? "overview";
  const open = useCallback(() => (device === undefined ? undefined : compose()), [compose, device]);
  useDeviceKeys(open);
  const show = (command: string): void => void navigate({ to: "/devices/$deviceId", params: { deviceId }, search: { command } });
  const apps = device?.apps?.total ?? 0;
  const words = {
    ...text.tabs,
    apps:
      apps === 0 ? (
        text.tabs.apps
      ) : (
        <>
          {text.tabs.apps} <span className={css["count"]}>{numbers.format(apps)}</span>
        </>
      ),
  };
  const ping = maySend ? () => compose("ping") : null;
  return (
    <DetailPage
      path={[
        <Link key="devices" to="/devices">
          {text.devices}
        </Link>,
      ]}
      title={device === undefined ? text.title : deviceLabel(device)}
      pill={device === undefined ? undefined : <Pill tone={toneOf(device.status)}>{text.states[device.status]}</Pill>}
      facts={device === undefined ? [] : factsOf(device)}
      fill={tab === "commands" || tab === "apps" || tab === "backups" || tab === "volumes"}
      actions={
        device === undefined ? undefined : (
          <>
            {maySend ? (
              <button type="button" title="c" onClick={open}>
                <Icon name="commands" />
                {commandText.compose}
              </button>
            ) : null}
            {may("deployment:create") && may("app:read") ? (
              <Link to="/catalogue" data-kind="primary">
                <Icon name="add" />
                {text.install}
              </Link>
            ) : null}
          </>
        )
      }
      more={device !== undefined && (mayChange || ping !== null) ? <DeviceMenu device={device} onPing={ping} /> : undefined}
      tabs={device === undefined ? undefined : <Tabs label={text.tabList} tabs={tabs} words={words} current={tab} />}
    >
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            <Part tab={tab} device={found} onPing={ping} />
            {first === null ? null : (
              <Composer
                device={found}
                type={first}
                onClose={close}
                onSent={(id) => {
                  close();
                  show(id);
                }}
              />
            )}
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};
