// What is known of a deployment, above its tabs.
import type { Deployment } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { actorText } from "../../parts/text.ts";
import { deviceLabel } from "../../ui/device-label.ts";
import { Facts } from "../../ui/parts.tsx";
import { Ago, duration } from "../../ui/time.tsx";
import { text } from "./text.ts";

const DeviceLink = ({ deviceId }: { readonly deviceId: string }) => {
  const may = useMay();
  const device = useQuery({ ...api.devices.get.queryOptions({ deviceId }), enabled: may("device:read") }).data;
  if (!may("device:read")) return deviceId;
  return (
    <Link to="/devices/$deviceId" params={{ deviceId }}>
      {device === undefined ? deviceId : deviceLabel(device)}
    </Link>
  );
};

export const DeploymentFacts = ({ of }: { readonly of: Deployment }) => {
  const { deploymentId, template, templateVersion, deviceId, appId, revision, currentRevision, runtime, timeoutSeconds, createdAt, createdBy } = of;
  const may = useMay();
  const seesApps = may("app:read");
  return (
    <Facts
      of={{
        [text.application]:
          template === null ? null : seesApps ? (
            <Link to="/catalogue/$templateId" params={{ templateId: template }}>
              {template} {templateVersion}
            </Link>
          ) : (
            `${template} ${templateVersion}`
          ),
        [text.device]: deviceId === null ? null : <DeviceLink deviceId={deviceId} />,
        [text.app]:
          appId === null || !seesApps ? null : (
            <Link to="/apps/$appId" params={{ appId }}>
              {appId}
            </Link>
          ),
        [text.revision]: template === null ? null : revision,
        [text.active]: template === null ? null : (currentRevision ?? text.none),
        [text.runtime]: template === null ? null : runtime,
        [text.timeout]: template === null ? null : duration(1_000 * timeoutSeconds),
        [text.created]: <Ago at={createdAt} />,
        [text.by]: actorText({ id: createdBy, name: null }),
        [text.events]: may("event:read") ? (
          <Link to="/events" search={{ subject: deploymentId }}>
            {text.showEvents}
          </Link>
        ) : null,
      }}
    />
  );
};
