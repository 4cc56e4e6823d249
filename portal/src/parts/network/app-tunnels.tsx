// The ports of an app with a way to each from anywhere: a tunnel that is there, or the button that makes one for members.
import type { AppDetails, Tunnel } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, mooring, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Failure, FailureOf } from "../../ui/failure.tsx";
import { Copyable } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import css from "./network.module.css";
import { isOpenTunnel, tunnelState } from "./tunnel-words.ts";

const MOST = 100;
const FOLLOW_MS = 2_000;
const text = {
  open: "Open",
  openNamed: (name: string) => `Open ${name} through its tunnel`,
  make: "Make a tunnel",
  makeNamed: (name: string) => `Make a tunnel to ${name}`,
  unreached: (name: string) => `${name}: not reachable from outside`,
  details: "Details",
  detailsNamed: (name: string) => `Details of the tunnel to ${name}`,
  private: "A new tunnel opens to members who sign in, and to nobody else.",
} as const;

interface Port {
  readonly name: string;
  readonly port: number;
}

/** What a tunnel can lead to. */
export const portsOf = ({ addresses, reported }: Pick<AppDetails, "addresses" | "reported">): readonly Port[] => {
  const shown = addresses.filter(({ kind, url }) => kind === "lan" && !url.startsWith("udp:"));
  // A browser knows the usual port of a scheme and leaves it out.
  if (shown.length > 0) return shown.map(({ name, url }) => ({ name, port: Number(/:(\d+)\/?$/.exec(url)?.[1] ?? 80) }));
  return Object.entries(reported?.ports ?? {}).map(([name, port]) => ({ name, port }));
};

const WithTunnel = ({ port: { name }, tunnel }: { readonly port: Port; readonly tunnel: Tunnel }) => {
  const { tunnelId, url } = tunnel;
  return (
    <li>
      <Copyable text={url} />
      {isOpenTunnel(tunnel) ? <span className="muted">tunnel</span> : <Status {...tunnelState(tunnel)} />}
      <Link to="/network/tunnels/$tunnelId" params={{ tunnelId }} aria-label={text.detailsNamed(name)}>
        {text.details}
      </Link>
      {tunnel.protocol === "tcp" ? null : isOpenTunnel(tunnel) ? (
        <a href={url} target="_blank" rel="noreferrer" data-kind="button" data-size="small" aria-label={text.openNamed(name)}>
          {text.open}
        </a>
      ) : (
        <button type="button" data-size="small" disabled aria-label={text.openNamed(name)}>
          {text.open}
        </button>
      )}
    </li>
  );
};

export const AppTunnels = ({ app }: { readonly app: AppDetails }) => {
  const { appId, deviceId, name: appName, status } = app;
  const may = useMay();
  const read = useQuery({
    ...api.tunnels.list.queryOptions({ appId, sort: "createdAt", pageSize: MOST }),
    // The agent says within seconds that it reaches the service.
    refetchInterval: ({ state: { data } }) => (data?.items.some((tunnel) => tunnel.status === "pending") === true ? FOLLOW_MS : 30_000),
  });
  const create = useMutation({
    mutationFn: ({ name, port }: Port) => mooring.tunnels.create.mutate({ deviceId, appId, targetPort: port, name: `${appName} ${name}`.slice(0, 60) }),
    onSuccess: () => queryClient.invalidateQueries(api.tunnels.pathFilter()),
  });
  const ports = portsOf(app);
  if (read.data === undefined || ports.length === 0) return <FailureOf read={read} />;
  const found = new Map(read.data.items.toReversed().map((tunnel) => [tunnel.targetPort, tunnel]));
  const mayCreate = may("tunnel:create") && status !== "removed";
  const isWanting = ports.some(({ port }) => !found.has(port));
  return (
    <>
      {create.error === null ? null : <Failure key={create.submittedAt} error={create.error} />}
      <ul className={css["ways"]}>
        {ports.map((port) => {
          const tunnel = found.get(port.port);
          if (tunnel !== undefined) return <WithTunnel key={port.name} port={port} tunnel={tunnel} />;
          return (
            <li key={port.name}>
              <span className="muted">{text.unreached(port.name)}</span>
              {mayCreate ? (
                <button type="button" data-size="small" disabled={create.isPending} aria-label={text.makeNamed(port.name)} onClick={() => create.mutate(port)}>
                  {text.make}
                </button>
              ) : null}
            </li>
          );
        })}
      </ul>
      {isWanting && mayCreate ? <p className="muted">{text.private}</p> : null}
    </>
  );
};
