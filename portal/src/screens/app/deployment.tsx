// The page of a deployment that has no app: one that waits for its device, was cancelled, or groups devices. Any other leads to its app.
import type { DeploymentWithActors as Named } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, Navigate, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, mooring } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { AppFailure } from "../../parts/apps/app-failure.tsx";
import { shownStatus } from "../../parts/apps/app-status.tsx";
import { AppSteps } from "../../parts/apps/app-steps.tsx";
import { canDeployment } from "../../parts/apps/app-verbs.ts";
import { readDeployablesAgain } from "../../parts/apps/deployables.ts";
import { actorText } from "../../parts/text.ts";
import { DetailPage, Pill } from "../../ui/detail-page.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { MenuItem } from "../../ui/menu-items.tsx";
import { Loaded, Page, Panel } from "../../ui/parts.tsx";
import { toneOf } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { Value } from "../../ui/value.tsx";
import { AppRevisions } from "./revisions.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/deployments/$deploymentId");

interface DialogProps {
  readonly of: Named;
  readonly onClose: () => void;
}

const Remove = ({ of: { deploymentId }, onClose }: DialogProps) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.deployments.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/deployments" });
        await readDeployablesAgain();
      },
    }),
  );
  return (
    <Confirm
      title={`${text.deleteDeployment}?`}
      open
      onClose={onClose}
      submit={text.deleteDeployment}
      back={text.back}
      action={remove}
      onConfirm={() => remove.mutate({ deploymentId })}
    >
      {text.removalOfNone}
    </Confirm>
  );
};

const One = ({ of }: { readonly of: Named }) => {
  const { deploymentId, name, status, template, templateVersion, isDefault, failure, configuration, revision, createdAt, actor } = of;
  const may = useMay();
  const [isRemoving, setRemoving] = useState(false);
  const options = { onSuccess: readDeployablesAgain };
  const cancel = useMutation(api.deployments.cancel.mutationOptions(options));
  const timeline = useQuery(api.deployments.timeline.queryOptions({ deploymentId }));
  const { status: like, word } = shownStatus(status);
  const canRemove = may("deployment:delete") && !isDefault && canDeployment(status, "remove");
  return (
    <DetailPage
      path={[
        <Link key="apps" to="/apps">
          {text.apps}
        </Link>,
        <Link key="deployments" to="/deployments">
          {text.deployments}
        </Link>,
      ]}
      title={name}
      pill={<Pill tone={toneOf(like)}>{word}</Pill>}
      facts={[
        ...(template === null ? [] : [{ words: `${template} ${templateVersion}` }]),
        {
          words: (
            <>
              {text.created} <Ago at={createdAt} /> {text.by(actorText(actor))}
            </>
          ),
        },
      ]}
      actions={
        may("deployment:deploy") && template !== null && canDeployment(status, "cancel") ? (
          <button type="button" disabled={cancel.isPending} onClick={() => cancel.mutate({ deploymentId })}>
            {text.cancelDeployment}
          </button>
        ) : undefined
      }
      more={canRemove ? <MenuItem onChoose={() => setRemoving(true)}>{text.deleteDeployment}</MenuItem> : undefined}
    >
      {template === null ? <p>{text.group}</p> : null}
      {isDefault ? <p>{text.default}</p> : null}
      <AppFailure failure={failure} />
      {template === null ? null : (
        <>
          {revision === 0 ? null : <AppRevisions deploymentId={deploymentId} />}
          <Panel title={text.steps}>
            <Loaded read={timeline}>{(found) => <AppSteps timeline={found} />}</Loaded>
          </Panel>
          <Panel title={text.tabs.configuration}>
            <Value label={text.values} value={configuration ?? {}} />
          </Panel>
        </>
      )}
      {isRemoving ? <Remove of={of} onClose={() => setRemoving(false)} /> : null}
    </DetailPage>
  );
};

export const DeploymentScreen = () => {
  const { deploymentId } = route.useParams();
  const { tab = "history", ...search } = route.useSearch();
  const may = useMay();
  const read = useQuery(api.deployments.get.queryOptions({ deploymentId }));
  const appId = read.data?.appId ?? null;
  const leads = appId !== null && may("app:read");
  // The app of a cancelled deployment goes as soon as its device is there: what is known from before does not count, nor what is on its way since then.
  const [visit] = useState(() => performance.now());
  const app = useQuery({
    queryKey: ["leads", appId, visit],
    queryFn: ({ signal }) => mooring.apps.get.query({ appId: appId ?? "" }, { signal }),
    enabled: leads,
  });
  if (leads && app.data !== undefined) return <Navigate to="/apps/$appId" params={{ appId }} search={{ tab, ...search }} replace />;
  if (read.data === undefined || (leads && app.isPending))
    return (
      <Page title={text.deployment}>
        <Loaded read={{ ...read, data: undefined }} rows={8}>
          {() => null}
        </Loaded>
      </Page>
    );
  return <One key={deploymentId} of={read.data} />;
};
