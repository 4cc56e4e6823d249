// What leads to a device and what it reaches: its tunnels, and the mesh routes that it uses or carries, with the reason for those that it cannot use.
import type { EffectiveRoute } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { useDeviceNames } from "../device-names.ts";
import css from "./network.module.css";
import { tunnelState } from "./tunnel-words.ts";

const MOST = 100;
const REASONS: Readonly<Record<NonNullable<EffectiveRoute["reason"]>, string>> = {
  pending: "waits for approval",
  rejected: "rejected",
  disabled: "off",
  no_router: "no router answers",
  not_active_router: "stands by",
};
const text = {
  tunnels: "Tunnels",
  noTunnels: "No tunnel leads to this device.",
  routes: "Mesh routes",
  routesWhat: "What programs on this device reach through others, and what others reach through it.",
  noRoutes: "It uses and carries no mesh route.",
  usable: "works",
  reaches: (name: string | null, port: number | null) =>
    ["reaches it", ...(name === null ? [] : [`through ${name}`]), ...(port === null ? [] : [`at 127.0.0.1:${port}`])].join(" "),
  carries: "carries it for others",
} as const;

const DeviceTunnels = ({ deviceId }: { readonly deviceId: string }) => {
  const read = useQuery(api.tunnels.list.queryOptions({ deviceId, sort: "name", pageSize: MOST }));
  return (
    <Panel title={text.tunnels}>
      <Loaded read={read} rows={2}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="muted">{text.noTunnels}</p>
          ) : (
            <ul className={css["ways"]}>
              {items.map((tunnel) => (
                <li key={tunnel.tunnelId}>
                  <span>
                    <Link to="/network/tunnels/$tunnelId" params={{ tunnelId: tunnel.tunnelId }}>
                      {tunnel.name}
                    </Link>{" "}
                    <span className="muted mono">{tunnel.service}</span>
                  </span>
                  <Status {...tunnelState(tunnel)} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
};

const STATUS: Readonly<Record<NonNullable<EffectiveRoute["reason"]>, string>> = {
  pending: "pending",
  rejected: "rejected",
  disabled: "idle",
  no_router: "failed",
  not_active_router: "idle",
};

const EffectiveRow = ({ of, routerName }: { readonly of: EffectiveRoute; readonly routerName: string | null }) => {
  const { routeId, name, target, role, listenPort, reason } = of;
  return (
    <li>
      <span>
        <Link to="/network/routes/$routeId" params={{ routeId }}>
          {name}
        </Link>{" "}
        <span className="mono">{target}</span> <span className="muted">{role === "router" ? text.carries : text.reaches(routerName, listenPort)}</span>
      </span>
      <Status status={reason === null ? "ok" : STATUS[reason]} word={reason === null ? text.usable : REASONS[reason]} />
    </li>
  );
};

const DeviceRoutes = ({ deviceId }: { readonly deviceId: string }) => {
  const read = useQuery({ ...api.meshRoutes.effective.queryOptions({ deviceId }), refetchInterval: 10_000 });
  const items = read.data?.items ?? [];
  const nameOf = useDeviceNames({ count: items.length, row: (at) => ({ deviceId: items[at]?.router ?? null }) });
  return (
    <Panel title={text.routes}>
      <p className="muted">{text.routesWhat}</p>
      <Loaded read={read} rows={2}>
        {(found) =>
          found.items.length === 0 ? (
            <p className="muted">{text.noRoutes}</p>
          ) : (
            <ul className={css["ways"]}>
              {found.items.map((each) => (
                <EffectiveRow key={`${each.routeId} ${each.role}`} of={each} routerName={each.router === null ? null : nameOf(each.router)} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
};

export const DeviceNetwork = ({ deviceId }: { readonly deviceId: string }) => {
  const may = useMay();
  return (
    <div className="stack">
      {may("tunnel:read") ? <DeviceTunnels deviceId={deviceId} /> : null}
      {may("mesh:read") ? <DeviceRoutes deviceId={deviceId} /> : null}
    </div>
  );
};
