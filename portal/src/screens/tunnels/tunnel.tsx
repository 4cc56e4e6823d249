// One tunnel: its address, whether it serves and why not, who may come in, and what people do with it.
import type { TunnelWithActors as Tunnel } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { given } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { useDeviceNames } from "../../parts/device-names.ts";
import css from "../../parts/network/network.module.css";
import { isOpenTunnel, tunnelState } from "../../parts/network/tunnel-words.ts";
import { actorText } from "../../parts/text.ts";
import { Beside, DetailPage, type PageFact, Pill } from "../../ui/detail-page.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { Failure, FailureOf } from "../../ui/failure.tsx";
import { PageIcon } from "../../ui/icon.tsx";
import { MenuItem } from "../../ui/menu-items.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { toneOf } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { TunnelEntrance } from "./entrance.tsx";
import { TunnelForm } from "./form.tsx";
import { text } from "./text.ts";
import { RotateToken, ShowToken } from "./token.tsx";

const route = getRouteApi("/network/tunnels/$tunnelId");
const FOLLOW_MS = 5_000;
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.tunnels.pathFilter());

interface OfTunnel {
  readonly tunnel: Tunnel;
}
interface DialogProps extends OfTunnel {
  readonly onClose: () => void;
}

const Change = ({ tunnel, onClose }: DialogProps) => {
  const { tunnelId, version } = tunnel;
  const update = useMutation(
    api.tunnels.update.mutationOptions({
      onSuccess: async () => {
        onClose();
        await readAgain();
      },
    }),
  );
  return (
    <Dialog title={text.change} open onClose={onClose}>
      <TunnelForm
        of={tunnel}
        submit={text.save}
        action={update}
        onCancel={onClose}
        onSubmit={({ name, access, hostHeader, limits, expiresAt, hostname, service }) =>
          update.mutate({ tunnelId, version, name, access, hostHeader, limits, expiresAt, ...given({ hostname, service }) })
        }
      />
    </Dialog>
  );
};

const Remove = ({ tunnel: { tunnelId, name }, onClose }: DialogProps) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.tunnels.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/network" });
        queryClient.removeQueries(api.tunnels.get.queryFilter({ tunnelId }));
        await readAgain();
      },
    }),
  );
  return (
    <Confirm title={text.remove} submit={text.remove} open onClose={onClose} typed={name} action={remove} onConfirm={() => remove.mutate({ tunnelId })}>
      {text.removal}
    </Confirm>
  );
};
const DIALOGS = { change: Change, remove: Remove, token: ShowToken, rotate: RotateToken } as const;

/** Why it serves nobody, and the next step. */
const Problems = ({ tunnel, start, showToken }: OfTunnel & { readonly start: ReactNode; readonly showToken: ReactNode }) => {
  const { failure, deviceId } = tunnel;
  const { status } = tunnelState(tunnel);
  if (status === "stopped") return <Notice tone="warn" title={text.stopped} actions={start} />;
  if (status === "expired") return <Notice tone="warn" title={text.expired} />;
  if (failure !== null)
    return (
      <Notice tone="bad" title={text.unreached}>
        <p>
          {failure.message} <code>{failure.reason}</code>
        </p>
      </Notice>
    );
  if (status === "offline")
    return (
      <Notice tone="bad" title={text.notConnected}>
        <p>{text.notConnectedWhat}</p>
      </Notice>
    );
  if (status !== "pending") return null;
  return deviceId === undefined ? <Notice tone="busy" title={text.waitsForConnector} actions={showToken} /> : <Notice tone="busy" title={text.waits} />;
};

const TunnelStanding = ({ tunnel: { tunnelId, service, deviceId } }: OfTunnel) => {
  const health = useQuery({ ...api.tunnels.health.queryOptions({ tunnelId }), refetchInterval: FOLLOW_MS });
  const carriers = useQuery({ ...api.tunnels.connections.queryOptions({ tunnelId }), refetchInterval: FOLLOW_MS });
  return (
    <Panel title={text.health}>
      <Loaded read={health} rows={2}>
        {({ service: state, lastSeen }) => (
          <Facts
            of={{
              [text.serviceState]: (
                <>
                  {deviceId === undefined ? null : <span className="mono">{service} </span>}
                  {text.services[state]}
                </>
              ),
              [text.lastSeen]: lastSeen === null ? null : <Ago at={lastSeen} />,
            }}
          />
        )}
      </Loaded>
      <FailureOf read={carriers} />
      <Facts
        of={{
          [text.carriers]:
            carriers.data === undefined ? null : carriers.data.items.length === 0 ? (
              text.noCarrier
            ) : (
              <ul className={css["ways"]}>
                {carriers.data.items.map(({ id, kind, openedAt }) => (
                  <li key={id}>
                    {text.carrier[kind]}, {text.connected} <Ago at={openedAt} />
                  </li>
                ))}
              </ul>
            ),
        }}
      />
    </Panel>
  );
};

const useFacts = (tunnel: Tunnel | undefined): readonly PageFact[] => {
  const deviceId = tunnel?.deviceId ?? null;
  const nameOf = useDeviceNames({ count: 1, row: () => ({ deviceId }) });
  if (tunnel === undefined) return [];
  const { appId, createdAt, actor } = tunnel;
  return [
    {
      icon: "system",
      words:
        deviceId === null ? (
          text.connectors
        ) : (
          <Link to="/devices/$deviceId" params={{ deviceId }}>
            {nameOf(deviceId)}
          </Link>
        ),
    },
    ...(appId === null
      ? []
      : [
          {
            words: (
              <>
                {text.for}{" "}
                <Link to="/apps/$appId" params={{ appId }}>
                  {text.app}
                </Link>
              </>
            ),
          },
        ]),
    { icon: "info", words: `${text.access.toLowerCase()} ${text.openTo(tunnel)}` },
    {
      icon: "time",
      words: (
        <>
          {text.since} <Ago at={createdAt} />, {actorText(actor)}
        </>
      ),
    },
  ];
};

const OpenTunnel = ({ tunnel }: OfTunnel) => {
  const words = (
    <>
      <PageIcon name="open" />
      {text.open}
    </>
  );
  return isOpenTunnel(tunnel) ? (
    <a href={tunnel.url} target="_blank" rel="noreferrer" data-kind="primary">
      {words}
    </a>
  ) : (
    <button type="button" data-kind="primary" disabled title={text.openHint}>
      {words}
    </button>
  );
};

export const TunnelScreen = () => {
  const { tunnelId } = route.useParams();
  const may = useMay();
  const [opened, setOpened] = useState<keyof typeof DIALOGS | null>(null);
  const read = useQuery({ ...api.tunnels.get.queryOptions({ tunnelId }), refetchInterval: FOLLOW_MS });
  const tunnel = read.data;
  const facts = useFacts(tunnel);
  const update = useMutation(api.tunnels.update.mutationOptions({ onSuccess: readAgain }));
  const [mayChange, mayRemove, mayRead] = [may("tunnel:update"), may("tunnel:delete"), may("tunnel:credentials")];
  const Shown = opened === null ? null : DIALOGS[opened];
  const move = (status: "active" | "stopped", size?: "small") => (
    <button type="button" data-size={size} disabled={update.isPending} onClick={() => update.mutate({ tunnelId, status })}>
      {status === "active" ? text.start : text.stop}
    </button>
  );
  const hasToken = mayRead && tunnel?.protocol !== "tcp";
  const showToken = hasToken ? (
    <button type="button" data-size="small" onClick={() => setOpened("token")}>
      {text.showToken}
    </button>
  ) : undefined;
  const state = tunnel === undefined ? undefined : tunnelState(tunnel);
  const isStopped = tunnel?.status === "stopped";
  return (
    <DetailPage
      path={[
        <Link key="tunnels" to="/network">
          {text.title}
        </Link>,
      ]}
      title={tunnel?.name ?? text.one}
      pill={state === undefined ? undefined : <Pill tone={toneOf(state.status)}>{state.word}</Pill>}
      facts={facts}
      actions={
        tunnel === undefined ? undefined : (
          <>
            {mayChange && !isStopped ? move("stopped") : null}
            {mayChange ? (
              <button type="button" onClick={() => setOpened("change")}>
                <PageIcon name="edit" />
                {text.change}
              </button>
            ) : null}
            {tunnel.protocol === "tcp" ? null : <OpenTunnel tunnel={tunnel} />}
          </>
        )
      }
      more={
        tunnel !== undefined && (mayRemove || hasToken) ? (
          <>
            {hasToken ? <MenuItem onChoose={() => setOpened("rotate")}>{text.rotate}</MenuItem> : null}
            {mayRemove ? <MenuItem onChoose={() => setOpened("remove")}>{text.remove}</MenuItem> : null}
          </>
        ) : undefined
      }
    >
      {update.error === null ? null : <Failure key={update.submittedAt} error={update.error} />}
      <Loaded read={read} rows={8}>
        {(found) => (
          <>
            <Problems tunnel={found} start={mayChange ? move("active", "small") : undefined} showToken={showToken} />
            <Beside main={<TunnelEntrance tunnel={found} showToken={showToken} />} side={<TunnelStanding tunnel={found} />} />
            {Shown === null ? null : <Shown tunnel={found} onClose={() => setOpened(null)} />}
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};
