// What is wrong with a device, each with why, since when, and the next step beside it.
import type { App, Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { inWords } from "../../../../protocol/kit/words.ts";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { failureTitle } from "../../parts/apps/app-text.ts";
import { FailureOf } from "../../ui/failure.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Ago, Since } from "../../ui/time.tsx";
import { text } from "./text.ts";

/** More of a kind stand behind a link. */
const SHOWN = 3;
const button = { "data-kind": "button", "data-size": "small" } as const;

const Absence = ({ device: { deviceId, status, lastSeen, offlineReason, maintenance } }: { readonly device: Device }) => {
  const may = useMay();
  if (status === "online") return null;
  const isExpected = maintenance?.enabled === true || status === "provisioning";
  const events = may("event:read") ? (
    <Link to="/events" search={{ subject: deviceId }} {...button}>
      {text.whatHappened}
    </Link>
  ) : undefined;
  const pair = may("device:pair") ? (
    <Link to="/pair" {...button}>
      {text.pair}
    </Link>
  ) : undefined;
  const title =
    status === "provisioning" || lastSeen === undefined ? (
      text.neverConnected
    ) : (
      <>
        {text.offlineFor} <Since at={lastSeen} />
      </>
    );
  return (
    <Notice tone={isExpected ? "busy" : "bad"} title={title} actions={status === "provisioning" ? pair : events}>
      <p>
        {status === "offline" && offlineReason !== undefined ? text.because(inWords(offlineReason)) : null}
        {text.commandsWait}
      </p>
    </Notice>
  );
};

const Repair = ({ device: { deviceId, repairUntil } }: { readonly device: Device }) => {
  const may = useMay();
  if (repairUntil === undefined) return null;
  return (
    <Notice
      tone="warn"
      title={text.repairOpen}
      actions={
        may("device:secrets:rotate") ? (
          <Link to="/devices/$deviceId" params={{ deviceId }} search={{ tab: "settings" }} {...button}>
            {text.closeRepair}
          </Link>
        ) : undefined
      }
    >
      <p>
        {text.repairWhat} {text.ends} <Ago at={repairUntil} />
      </p>
    </Notice>
  );
};

const FailedApp = ({ app: { appId, name, failure, updatedAt } }: { readonly app: App }) => {
  const may = useMay();
  const title = `${name}: ${failure === null ? text.inError : failureTitle(failure)}`;
  return (
    <Notice
      tone="bad"
      title={title}
      actions={
        <>
          {may("app:logs") ? (
            <Link to="/apps/$appId" params={{ appId }} search={{ tab: "logs" }} {...button}>
              {text.showLog}
            </Link>
          ) : null}
          <Link to="/apps/$appId" params={{ appId }} {...button}>
            {text.openApp}
          </Link>
        </>
      }
    >
      <p>
        {failure === null ? null : (
          <>
            {failure.message} <code>{failure.reason}</code>,{" "}
          </>
        )}
        <Ago at={updatedAt} />
        {failure === null || failure.commandId === null || !may("command:read") ? null : (
          <>
            ,{" "}
            <Link to="/commands" search={{ command: failure.commandId }}>
              {text.itsCommand}
            </Link>
          </>
        )}
      </p>
    </Notice>
  );
};

const Alerts = ({ deviceId }: { readonly deviceId: string }) => {
  const read = useQuery(api.alerts.list.queryOptions({ deviceId, status: ["open"], pageSize: SHOWN }));
  const { data } = read;
  if (data === undefined || data.items.length === 0) return <FailureOf read={read} />;
  const more = (data.total ?? 0) - data.items.length;
  return (
    <>
      {data.items.map(({ alertId, severity, title, summary, startedAt }) => (
        <Notice
          key={alertId}
          tone={severity === "critical" ? "bad" : severity === "warning" ? "warn" : "busy"}
          title={title}
          actions={
            <Link to="/alerts" search={{ open: alertId }} {...button}>
              {text.look}
            </Link>
          }
        >
          <p>
            {summary} <Ago at={startedAt} />
          </p>
        </Notice>
      ))}
      {more > 0 ? (
        <Link to="/alerts" search={{ deviceId, status: "open" }}>
          {text.moreAlerts(more)}
        </Link>
      ) : null}
    </>
  );
};

export const DeviceProblems = ({ device, failed }: { readonly device: Device; readonly failed: readonly App[] }) => {
  const { deviceId, apps } = device;
  const may = useMay();
  const more = (apps?.error ?? 0) - Math.min(failed.length, SHOWN);
  return (
    <>
      <Absence device={device} />
      {failed.slice(0, SHOWN).map((app) => (
        <FailedApp key={app.appId} app={app} />
      ))}
      {more > 0 && failed.length > 0 ? (
        <Link to="/apps" search={{ deviceId, status: "error" }}>
          {text.moreFailed(more)}
        </Link>
      ) : null}
      {may("alert:read") ? <Alerts deviceId={deviceId} /> : null}
      <Repair device={device} />
    </>
  );
};
