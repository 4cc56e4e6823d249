// One device: whether it is healthy, what it does, and why it does not answer.
import type { Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Composer } from "../../parts/composer.tsx";
import { text as commandText } from "../../parts/text.ts";
import { useKeys } from "../../ui/keyboard.ts";
import { Copyable, Loaded, Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { DeviceApps } from "./device-apps.tsx";
import { DeviceCommands } from "./device-commands.tsx";
import { DeviceMetrics } from "./device-metrics.tsx";
import { DeviceSettings } from "./device-settings.tsx";
import { DeviceFacts } from "./facts.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/devices/$deviceId");

type Tab = keyof typeof text.tabs;
const CHANGES = ["device:update", "device:secrets:rotate", "device:disconnect", "device:delete"];

const useTabs = (): readonly Tab[] => {
  const may = useMay();
  return [
    ...(may("command:read") ? (["commands"] as const) : []),
    ...(may("app:read") ? (["apps"] as const) : []),
    "metrics",
    ...(CHANGES.some(may) ? (["settings"] as const) : []),
  ];
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

const Part = ({ tab, device, onPing }: { readonly tab: Tab; readonly device: Device; readonly onPing: (() => void) | null }) => {
  if (tab === "apps") return <DeviceApps deviceId={device.deviceId} />;
  if (tab === "metrics") return <DeviceMetrics device={device} />;
  return tab === "settings" ? <DeviceSettings device={device} /> : <DeviceCommands onPing={onPing} />;
};

export const DeviceScreen = () => {
  const { deviceId } = route.useParams();
  const search = route.useSearch();
  const navigate = useNavigate();
  const tabs = useTabs();
  const composer = useComposer();
  const { compose } = composer;
  // A heartbeat has no event.
  const read = useQuery({ ...api.devices.get.queryOptions({ deviceId }), refetchInterval: 15_000 });
  const device = read.data;
  const tab = tabs.find((each) => each === search.tab) ?? tabs[0] ?? "metrics";
  const open = useCallback(() => (device === undefined ? undefined : compose()), [compose, device]);
  useDeviceKeys(open);
  const show = (command: string): void => void navigate({ to: "/devices/$deviceId", params: { deviceId }, search: { command } });
  return (
    <Page
      title={device?.name ?? device?.hostname ?? text.title}
      fill={tab === "commands" || tab === "apps"}
      beside={
        <>
          {device === undefined ? null : <Status status={device.status} />}
          <Copyable text={deviceId} />
        </>
      }
      actions={
        device !== undefined && composer.maySend ? (
          <button type="button" data-kind="primary" onClick={open}>
            {commandText.compose}
          </button>
        ) : undefined
      }
    >
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            <DeviceFacts device={found} />
            <Tabs label={text.tabList} tabs={tabs} words={text.tabs} current={tab} />
            <Part tab={tab} device={found} onPing={composer.maySend ? () => compose("ping") : null} />
            {composer.first === null ? null : (
              <Composer
                device={found}
                type={composer.first}
                onClose={composer.close}
                onSent={(id) => {
                  composer.close();
                  show(id);
                }}
              />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
};
