// The first tab of an app: first what is wrong or on offer, then figures and the end of its log, and beside them its addresses and its history.
import type { AppDetails } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Suspense } from "react";
import { api, mooring } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { AppFailure } from "../../parts/apps/app-failure.tsx";
import { AppLogTail } from "../../parts/apps/app-logs.tsx";
import { AppWaits } from "../../parts/apps/app-steps.tsx";
import { canApp } from "../../parts/apps/app-verbs.ts";
import { readDeployablesAgain } from "../../parts/apps/deployables.ts";
import { Drift } from "../../parts/apps/drift.tsx";
import { Beside } from "../../ui/detail-page.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Failure, FailureOf } from "../../ui/failure.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Ago } from "../../ui/time.tsx";
import { AppAddresses } from "./addresses.ts";
import { AppBackupsPanel } from "./backups.ts";
import { draftRows, keep, updateOf, useMayChange } from "./draft.ts";
import { AppFigures } from "./figures.tsx";
import { HistoryPanel, StepsPanel } from "./history.tsx";
import { PendingChange } from "./pending.tsx";
import { useDevice } from "./state.ts";
import { text } from "./text.ts";

interface OfApp {
  readonly app: AppDetails;
}

/** Offers the version of the catalogue: what it would change is read before it is applied. */
const Update = ({ app }: OfApp) => {
  const { appType, templateVersion, status } = app;
  const mayChange = useMayChange(app);
  const read = useQuery({ ...api.apps.template.queryOptions({ templateId: appType }), refetchInterval: false });
  const template = read.data;
  if (template === undefined) return <FailureOf read={read} />;
  if (template.version === templateVersion || !mayChange) return null;
  const { version } = template;
  const next = updateOf(app, template);
  const settings = draftRows(app, next).filter(({ field }) => field !== "version");
  return (
    <Notice
      tone="busy"
      icon="update"
      label={text.updateTo(version)}
      title={text.updateTo(version)}
      actions={
        <>
          <Link to="/catalogue/$templateId" params={{ templateId: appType }} data-kind="button" data-size="small">
            {text.readChanges}
          </Link>
          {canApp(status, "update") ? (
            <button type="button" data-size="small" onClick={() => keep(app, next)}>
              {text.review}
            </button>
          ) : null}
        </>
      }
    >
      <p>{text.updateWhat(settings.length, templateVersion)}</p>
    </Notice>
  );
};

/** Why it failed, and the way on: the same again. */
const Failed = ({ app: { appId, deploymentId, failure, status } }: OfApp) => {
  const may = useMay();
  const again = useMutation({
    mutationFn: async (): Promise<unknown> =>
      deploymentId === null ? mooring.apps.start.mutate({ appId }) : mooring.deployments.redeploy.mutate({ deploymentId }),
    onSuccess: readDeployablesAgain,
  });
  const isOffered = deploymentId === null ? may("app:update") && status === "error" : may("deployment:deploy") && canApp(status, "update");
  return (
    <>
      <AppFailure
        failure={failure}
        action={
          isOffered ? (
            <button type="button" data-size="small" disabled={again.isPending} onClick={() => again.mutate()}>
              {deploymentId === null ? text.start : text.again}
            </button>
          ) : null
        }
      />
      {again.error === null ? null : <Failure key={again.submittedAt} error={again.error} />}
    </>
  );
};

const Away = ({ app }: OfApp) => {
  const { read, device, isAway } = useDevice(app);
  if (device === undefined) return <FailureOf read={read} />;
  if (!isAway) return null;
  return (
    <Notice tone="warn" label={text.isOffline(deviceLabel(device))} title={text.isOffline(deviceLabel(device))}>
      <p>
        {text.offlineSince} <Ago at={device.lastSeen} />. {text.offlineWhat}
      </p>
    </Notice>
  );
};

export const AppOverview = ({ app }: OfApp) => {
  const { appId } = app;
  const may = useMay();
  const { isAway } = useDevice(app);
  const timeline = useQuery(api.apps.timeline.queryOptions({ appId }));
  return (
    <>
      <Away app={app} />
      <Failed app={app} />
      <Drift app={app} />
      {timeline.data === undefined ? <FailureOf read={timeline} /> : <AppWaits timeline={timeline.data} />}
      <Update app={app} />
      <AppFigures app={app} />
      <Beside
        main={
          <>
            <PendingChange app={app} />
            {may("app:logs") && !isAway ? <AppLogTail key={appId} appId={appId} /> : <StepsPanel app={app} />}
          </>
        }
        side={
          <>
            <Suspense fallback={null}>
              <AppAddresses app={app} />
              <AppBackupsPanel app={app} />
            </Suspense>
            <HistoryPanel app={app} />
          </>
        }
      />
    </>
  );
};
