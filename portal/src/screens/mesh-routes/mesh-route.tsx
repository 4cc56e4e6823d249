// One mesh route: what it leads to, whether somebody has to approve it, which routers answer, and who may use it.
import type { MeshRouteWithActors as MeshRoute } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api, mooring, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { useDeviceNames } from "../../parts/device-names.ts";
import { meshRouteState, meshTargetText } from "../../parts/network/mesh-words.ts";
import css from "../../parts/network/network.module.css";
import { selectorText } from "../../parts/selector-field.tsx";
import { actorText } from "../../parts/text.ts";
import { bytesText } from "../../ui/bytes.ts";
import { Beside, DetailPage, Pill } from "../../ui/detail-page.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { PageIcon } from "../../ui/icon.tsx";
import { MenuItem } from "../../ui/menu-items.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Status, toneOf } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { MeshRouteForm } from "./form.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/network/routes/$routeId");
const FOLLOW_MS = 10_000;
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.meshRoutes.pathFilter());

interface OfRoute {
  readonly of: MeshRoute;
}
interface DialogProps extends OfRoute {
  readonly onClose: () => void;
}

const Change = ({ of, onClose }: DialogProps) => {
  const { routeId, version } = of;
  const update = useMutation(
    api.meshRoutes.update.mutationOptions({
      onSuccess: async () => {
        onClose();
        await readAgain();
      },
    }),
  );
  return (
    <Dialog title={text.change} open onClose={onClose}>
      <MeshRouteForm
        of={of}
        submit={text.save}
        action={update}
        onCancel={onClose}
        onSubmit={({ kind: _, ...wishes }) => update.mutate({ routeId, version, ...wishes })}
      />
    </Dialog>
  );
};

const Remove = ({ of: { routeId, name }, onClose }: DialogProps) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.meshRoutes.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/network/routes" });
        queryClient.removeQueries(api.meshRoutes.get.queryFilter({ routeId }));
        await readAgain();
      },
    }),
  );
  return (
    <Confirm title={text.remove} submit={text.remove} open onClose={onClose} typed={name} action={remove} onConfirm={() => remove.mutate({ routeId })}>
      {text.removal}
    </Confirm>
  );
};
const DIALOGS = { change: Change, remove: Remove } as const;

const consumersText = ({ consumers: { all, deviceIds, tags, fleetIds } }: MeshRoute): string => selectorText(all ? null : { deviceIds, tags, fleetIds });

const Problems = ({ of, decide }: OfRoute & { readonly decide: ReactNode }) => {
  const { approval, status } = of;
  if (approval === "pending")
    return (
      <Notice tone="warn" title={text.waits} actions={decide}>
        <p>{text.approveWhat(consumersText(of), meshTargetText(of))}</p>
      </Notice>
    );
  if (approval === "rejected") return <Notice tone="bad" title={text.rejected} actions={decide} />;
  if (status === "disabled") return <Notice tone="warn" title={text.disabled} />;
  if (status === "down") return <Notice tone="bad" title={text.down} />;
  return status === "degraded" ? <Notice tone="warn" title={text.degraded} /> : null;
};

const ROUTER_STATUS = { unknown: "idle", up: "ok", down: "failed" } as const;
const Routers = ({ of: { routers, activeRouter } }: OfRoute) => {
  const sorted = routers.toSorted((a, b) => a.metric - b.metric);
  const nameOf = useDeviceNames({ count: sorted.length, row: (at) => ({ deviceId: sorted[at]?.deviceId ?? null }) });
  return (
    <Panel title={text.routers}>
      <ul className={css["ways"]}>
        {sorted.map(({ deviceId, metric, state, reason, checkedAt }) => (
          <li key={deviceId}>
            <Link to="/devices/$deviceId" params={{ deviceId }} search={{ tab: "network" }}>
              {nameOf(deviceId)}
            </Link>
            <Status status={ROUTER_STATUS[state]} word={text.routerState(state, reason)} />
            {deviceId === activeRouter ? <strong>{text.active}</strong> : null}
            <span className="muted">
              {text.metric(metric)}
              {checkedAt === null ? null : (
                <>
                  , {text.checked} <Ago at={checkedAt} />
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
};

const Offerer = ({ deviceId }: { readonly deviceId: string }) => {
  const nameOf = useDeviceNames({ count: 1, row: () => ({ deviceId }) });
  return (
    <Link to="/devices/$deviceId" params={{ deviceId }} search={{ tab: "network" }}>
      {nameOf(deviceId)}
    </Link>
  );
};

const Details = ({ of }: OfRoute) => {
  const { probe, listenPort, overlaps, allowPublic, usage, advertisedBy } = of;
  return (
    <Panel title={text.details}>
      <Facts
        of={{
          [text.leads]: <span className="mono">{meshTargetText(of)}</span>,
          [text.who]: consumersText(of),
          [text.offered]: advertisedBy === null ? null : <Offerer deviceId={advertisedBy} />,
          [text.listen]: listenPort,
          [text.probe]: probe === null ? null : <span className="mono">{`${probe.host}:${probe.port}`}</span>,
          [text.overlaps]: overlaps.length === 0 ? null : text.overlapsWhat(overlaps.length),
          [text.public]: allowPublic ? text.allowed : null,
          [text.usage]: (
            <>
              {text.used(usage.connections)}, {bytesText(usage.bytesIn + usage.bytesOut)}
              {usage.lastUsedAt === null ? null : (
                <>
                  , {text.lastUsed} <Ago at={usage.lastUsedAt} />
                </>
              )}
            </>
          ),
        }}
      />
    </Panel>
  );
};

export const MeshRouteScreen = () => {
  const { routeId } = route.useParams();
  const may = useMay();
  const [opened, setOpened] = useState<keyof typeof DIALOGS | null>(null);
  // A probe that finds what it found before has no event.
  const read = useQuery({ ...api.meshRoutes.get.queryOptions({ routeId }), refetchInterval: FOLLOW_MS });
  const found = read.data;
  const decision = useMutation({
    mutationFn: (verb: "approve" | "reject"): Promise<unknown> =>
      verb === "approve" ? mooring.meshRoutes.approve.mutate({ routeId, version: found?.version }) : mooring.meshRoutes.reject.mutate({ routeId }),
    onSuccess: readAgain,
  });
  const turn = useMutation(api.meshRoutes.update.mutationOptions({ onSuccess: readAgain }));
  const [mayChange, mayRemove, mayDecide] = [may("mesh:update"), may("mesh:delete"), may("mesh:approve")];
  const Shown = opened === null ? null : DIALOGS[opened];
  const decide = mayDecide ? (
    <>
      {found?.approval === "pending" ? (
        <button type="button" data-size="small" disabled={decision.isPending} onClick={() => decision.mutate("reject")}>
          {text.reject}
        </button>
      ) : null}
      <button type="button" data-kind="primary" data-size="small" disabled={decision.isPending} onClick={() => decision.mutate("approve")}>
        {text.approve}
      </button>
    </>
  ) : undefined;
  const state = found === undefined ? undefined : meshRouteState(found);
  const error = decision.error ?? turn.error;
  return (
    <DetailPage
      path={[
        <Link key="routes" to="/network/routes">
          {text.title}
        </Link>,
      ]}
      title={found?.name ?? text.one}
      pill={state === undefined ? undefined : <Pill tone={toneOf(state.status)}>{state.word}</Pill>}
      facts={
        found === undefined
          ? []
          : [
              { icon: "address", words: meshTargetText(found) },
              {
                icon: "time",
                words: (
                  <>
                    {text.since} <Ago at={found.since} />, {text.by} {actorText(found.actor)}
                  </>
                ),
              },
            ]
      }
      actions={
        found !== undefined && mayChange ? (
          <button type="button" onClick={() => setOpened("change")}>
            <PageIcon name="edit" />
            {text.change}
          </button>
        ) : undefined
      }
      more={
        found !== undefined && (mayChange || mayRemove) ? (
          <>
            {mayChange ? (
              <MenuItem disabled={turn.isPending} onChoose={() => turn.mutate({ routeId, enabled: !found.enabled })}>
                {found.enabled ? text.turnOff : text.turnOn}
              </MenuItem>
            ) : null}
            {mayRemove ? <MenuItem onChoose={() => setOpened("remove")}>{text.remove}</MenuItem> : null}
          </>
        ) : undefined
      }
    >
      {error === null ? null : <Failure key={decision.submittedAt + turn.submittedAt} error={error} />}
      <Loaded read={read} rows={8}>
        {(each) => (
          <>
            <Problems of={each} decide={decide} />
            <Beside main={<Routers of={each} />} side={<Details of={each} />} />
            {Shown === null ? null : <Shown of={each} onClose={() => setOpened(null)} />}
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};
