// What is known of an app, above its tabs: where it runs, what should be, and what its agent reports.
import type { App } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { deviceLabel } from "../../ui/device-label.ts";
import { Facts } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const percent = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const MEGABYTE = 1_048_576;

/** Devices name themselves; only what is a host's name becomes a link. */
const Address = ({ name, host, port }: { readonly name: string; readonly host: string | undefined; readonly port: number }) => {
  if (host === undefined || !/^[\w.-]+$/.test(host)) return <span>{text.port(name, String(port))}</span>;
  const at = `${host}:${port}`;
  return name.startsWith("http") ? (
    <a href={`${name.startsWith("https") ? "https" : "http"}://${at}`} target="_blank" rel="noreferrer">
      {at}
    </a>
  ) : (
    <span>{text.port(name, at)}</span>
  );
};

const reportedFacts = ({ reported, reportedAt }: App) =>
  reported === null
    ? {}
    : {
        [text.health]: <Status status={reported.health} />,
        [text.restarts]: reported.restarts,
        [text.cpu]: reported.cpuPercent === null ? null : `${percent.format(reported.cpuPercent)} %`,
        [text.memory]: reported.memoryBytes === null ? null : `${percent.format(reported.memoryBytes / MEGABYTE)} MB`,
        [text.reported]: <Ago at={reportedAt} />,
      };

export const AppFacts = ({ app }: { readonly app: App }) => {
  const { deviceId, deploymentId, appType, templateVersion, revision, desiredState, reported } = app;
  const may = useMay();
  const device = useQuery({ ...api.devices.get.queryOptions({ deviceId }), enabled: may("device:read") }).data;
  const ports = Object.entries(reported?.ports ?? {});
  return (
    <Facts
      of={{
        [text.device]: may("device:read") ? (
          <Link to="/devices/$deviceId" params={{ deviceId }}>
            {device === undefined ? deviceId : deviceLabel(device)}
          </Link>
        ) : (
          deviceId
        ),
        [text.application]: (
          <Link to="/catalogue/$templateId" params={{ templateId: appType }}>
            {appType} {templateVersion}
          </Link>
        ),
        [text.deployment]:
          deploymentId === null || !may("deployment:read") ? null : (
            <Link to="/deployments/$deploymentId" params={{ deploymentId }}>
              {deploymentId}
            </Link>
          ),
        [text.address]:
          ports.length === 0 ? null : (
            <span className="row">
              {ports.map(([name, port]) => (
                <Address key={name} name={name} host={device?.hostname} port={port} />
              ))}
            </span>
          ),
        [text.revision]: revision,
        [text.desired]: desiredState,
        ...reportedFacts(app),
      }}
    />
  );
};
