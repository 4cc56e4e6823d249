// The machines that were paired a moment ago: how far their installation is, and those that have come online.
import type { Device, EnrollmentProgress } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { api } from "../../api/client.ts";
import { useEvents } from "../../api/events.ts";
import type { Listener } from "../../api/live.ts";
import { Pill } from "../../ui/detail-page.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Bar } from "../../ui/figures.tsx";
import { Loaded } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago, useNow } from "../../ui/time.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";

const SHOWN = 5;
const RECENT_MS = 3_600_000;

/** The devices that this page has seen pair: of others nobody knows whether an installer reports anything. */
const usePaired = (named: string | undefined): ReadonlySet<unknown> => {
  const [paired, setPaired] = useState<ReadonlySet<unknown>>(() => new Set([named]));
  useEvents(
    useCallback<Listener>((events) => {
      const found = events.filter(({ type }) => type === "pairing.activated").map(({ subjectId }) => subjectId);
      if (found.length > 0) setPaired((before) => new Set([...before, ...found]));
    }, []),
  );
  return named === undefined ? paired : new Set([...paired, named]);
};

const Steps = ({ of: { steps } }: { readonly of: Pick<EnrollmentProgress, "steps"> }) => {
  // The database keeps them in no order.
  const reported = Object.entries(steps).toSorted(([a], [b]) => text.order.indexOf(a) - text.order.indexOf(b));
  const all = [["approved", "completed"], ...reported, ["online", "to come"]] as const;
  const done = all.filter(([, status]) => status === "completed" || status === "skipped").length;
  return (
    <>
      <Bar parts={[{ tone: "busy", count: done }]} whole={all.length} />
      <ol className={css["steps"]}>
        {all.map(([step, status]) => (
          <li key={step}>
            <Status status={status} word={text.steps(step)} />
          </li>
        ))}
      </ol>
    </>
  );
};

const Installation = ({ device: { deviceId } }: { readonly device: Device }) => {
  const read = useQuery({ ...api.pairing.deviceProgress.queryOptions({ deviceId }), refetchInterval: false });
  return (
    <Loaded read={read} rows={1}>
      {(progress) => (
        <>
          <Steps of={progress} />
          {progress.currentStep === "failed" ? (
            <p role="alert">
              {text.installFailed} {progress.error}
            </p>
          ) : null}
        </>
      )}
    </Loaded>
  );
};

const Arrival = ({ device, reports }: { readonly device: Device; readonly reports: boolean }) => {
  const { deviceId, status, createdAt } = device;
  const name = deviceLabel(device);
  const installs = status === "provisioning";
  return (
    <article className={css["card"]} aria-label={name}>
      <div className={css["cardHead"]}>
        <h3>
          <Link to="/devices/$deviceId" params={{ deviceId }}>
            {name}
          </Link>
        </h3>
        {installs ? <Pill tone="busy">{text.installs}</Pill> : <Status status={status} />}
      </div>
      <p role="status" className={css["small"]}>
        {installs ? (reports ? text.waits(name) : text.notYet(name)) : status === "online" ? text.isOnline(name) : text.hasArrived(name)}
      </p>
      <p className={css["small"]}>
        {text.paired} <Ago at={createdAt} />
      </p>
      {installs && reports ? <Installation device={device} /> : null}
    </article>
  );
};

const Named = ({ deviceId }: { readonly deviceId: string }) => {
  const read = useQuery(api.devices.get.queryOptions({ deviceId }));
  return <Loaded read={read}>{(device) => <Arrival device={device} reports />}</Loaded>;
};

/** `named` was approved here, and may be an older device whose identity another machine has now. */
export const Arrivals = ({ named }: { readonly named: string | undefined }) => {
  const paired = usePaired(named);
  const now = useNow();
  const newest = useQuery(api.devices.list.queryOptions({ sort: "-createdAt", pageSize: SHOWN }));
  const recent = (newest.data?.items ?? []).filter(({ createdAt }) => now - Date.parse(createdAt) < RECENT_MS);
  return (
    <>
      {named === undefined || recent.some(({ deviceId }) => deviceId === named) ? null : <Named key={named} deviceId={named} />}
      {recent.map((device) => (
        <Arrival key={device.deviceId} device={device} reports={paired.has(device.deviceId)} />
      ))}
    </>
  );
};
