// What a small fleet shows: each app with the way to its page, and each device with what it uses.
import type { AppDetails, Device } from "@mooring/client";
import { Link } from "@tanstack/react-router";
import { useMay } from "../../api/session.ts";
import { AppStatus } from "../../parts/apps/app-status.tsx";
import { AppTile } from "../../ui/app-tile.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Bar } from "../../ui/figures.tsx";
import { PageIcon } from "../../ui/icon.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Shape, Status, type Tone } from "../../ui/status.tsx";
import { clockOf } from "../../ui/time.tsx";
import css from "./overview.module.css";
import { useApps, useDevices } from "./small-fleet.ts";
import { text } from "./text.ts";

/** A device may have hundreds; the list of apps has the rest. */
const SHOWN_APPS = 24;

const AppState = ({ app: { name, status, drift, addresses }, device }: { readonly app: AppDetails; readonly device: Device | undefined }) => {
  const page = addresses.find(({ url }) => /^https?:/.test(url))?.url;
  if (device?.status === "offline") return <Status status="offline" word={text.apps.noContact} />;
  if (status !== "running" || page === undefined) return <AppStatus status={status} drift={drift} />;
  return (
    <a href={page} target="_blank" rel="noreferrer" data-kind="button" data-size="small" aria-label={text.apps.open(name)}>
      <PageIcon name="open" />
      {text.apps.openWord}
    </a>
  );
};

const App = ({ app, device }: { readonly app: AppDetails; readonly device: Device | undefined }) => {
  const { appId, name, icon, hue, status, drift } = app;
  const isWell = status === "running" && !drift && device?.status !== "offline";
  return (
    <li>
      <AppTile icon={icon} hue={hue} />
      <div>
        <Link to="/apps/$appId" params={{ appId }} className={`cut ${css["name"]}`}>
          {name}
        </Link>
        <small className="muted cut">
          {isWell ? <Shape tone="good" /> : null} {device === undefined ? "" : deviceLabel(device)}
        </small>
      </div>
      <AppState app={app} device={device} />
    </li>
  );
};

export const AppsPanel = () => {
  const read = useApps();
  const devices = useDevices();
  const deviceOf = new Map(devices.data?.items.map((device) => [device.deviceId as string, device]));
  return (
    <Panel title={text.apps.title} beside={<Link to="/apps">{text.apps.all}</Link>}>
      <Loaded read={read} rows={4}>
        {({ items }) => (
          <ul className={css["apps"]}>
            {items.slice(0, SHOWN_APPS).map((app) => (
              <App key={app.appId} app={app} device={deviceOf.get(app.deviceId)} />
            ))}
          </ul>
        )}
      </Loaded>
    </Panel>
  );
};

const NEAR = 80;
const FULL = 95;
const figureOf = ({ metrics }: Device, name: string): number | null => {
  const value = metrics?.[name];
  return typeof value === "number" && value >= 0 && value <= 100 ? value : null;
};
const toneOf = (percent: number): Tone | undefined => (percent >= FULL ? "bad" : percent >= NEAR ? "warn" : undefined);

const Percent = ({ label, value }: { readonly label: string; readonly value: number }) => {
  const tone = toneOf(value);
  return (
    <div>
      <span className={css["percent"]}>
        <span className="muted">{label}</span>
        <span>{text.percent(value / 100)}</span>
      </span>
      <Bar parts={[{ count: value, ...(tone === undefined ? {} : { tone }) }]} whole={100} />
    </div>
  );
};

const DeviceRow = ({ device }: { readonly device: Device }) => {
  const readsApps = useMay()("app:read");
  const { deviceId, status, platform, osVersion, arch, apps, lastSeen } = device;
  const facts = [osVersion ?? platform, arch, readsApps && apps !== undefined ? text.apps.count(apps.total) : undefined].filter(Boolean).join(", ");
  const figures = (["cpu", "memory", "disk"] as const).flatMap((name) => {
    const value = figureOf(device, name);
    return value === null ? [] : [{ name, value }];
  });
  return (
    <li>
      <div className={css["deviceHead"]}>
        <Link to="/devices/$deviceId" params={{ deviceId }} className={`cut ${css["name"]}`}>
          {deviceLabel(device)}
        </Link>
        <Status status={status} word={text.states[status]} />
      </div>
      {facts === "" ? null : <small className="muted cut">{facts}</small>}
      {status === "offline" ? (
        <small>{text.devices.silent(lastSeen === undefined ? null : clockOf(lastSeen), figures)}</small>
      ) : figures.length === 0 ? null : (
        <div className={css["meters"]}>
          {figures.map(({ name, value }) => (
            <Percent key={name} label={text.devices.figures[name]} value={value} />
          ))}
        </div>
      )}
    </li>
  );
};

export const DevicesPanel = () => {
  const read = useDevices();
  return (
    <Panel title={text.devices.title} beside={<Link to="/devices">{text.devices.all}</Link>}>
      <Loaded read={read} rows={4}>
        {({ items }) => (
          <ul className={css["devices"]}>
            {items.map((device) => (
              <DeviceRow key={device.deviceId} device={device} />
            ))}
          </ul>
        )}
      </Loaded>
    </Panel>
  );
};
