// A change of a deployment: first what it would do, value by value, then the deployment of exactly that.
import type { AppTemplate, Deployment, DeploymentPlan } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, mooring } from "../../api/client.ts";
import { configOf, refusedOf } from "../../parts/app-config.ts";
import { canDeployment } from "../../parts/app-verbs.ts";
import { ConfigFields } from "../../parts/config-fields.tsx";
import { readDeployablesAgain } from "../../parts/deployables.tsx";
import { Form } from "../../ui/dialog.tsx";
import { Diff } from "../../ui/diff.tsx";
import { ChangedElsewhere, useEdition } from "../../ui/edition.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { Empty, Loaded, Panel } from "../../ui/parts.tsx";
import { text } from "./text.ts";

interface Wish {
  readonly deploymentId: string;
  readonly configuration: Record<string, unknown>;
  readonly upgrade: boolean;
}

const Planned = ({ plan, children }: { readonly plan: DeploymentPlan; readonly children: React.ReactNode }) => (
  <Panel title={text.planned}>
    <p role="status">{text.action(plan)}</p>
    {plan.drift ? <p>{text.planDrift}</p> : null}
    {plan.changes.length === 0 ? (
      <p className="muted">{text.same}</p>
    ) : (
      <Diff
        caption={text.planned}
        rows={plan.changes.map(({ path, from, to }) => ({ field: path.replace(/^configuration\./, ""), before: from, after: to }))}
        before={text.now}
        after={text.later}
      />
    )}
    {children}
  </Panel>
);

const Change = ({ of, template }: { readonly of: Deployment; readonly template: AppTemplate }) => {
  const { deploymentId, configuration, revision, status, appId, templateVersion } = of;
  const { configSchema, version } = template;
  const edition = useEdition({ version: revision, config: configuration ?? {} });
  const { shown, show } = edition;
  const plan = useMutation({ mutationFn: (wish: Wish) => mooring.deployments.plan.query(wish) });
  const redeploy = useMutation(
    api.deployments.redeploy.mutationOptions({
      onSuccess: (next) => {
        plan.reset();
        show({ version: next.revision, config: next.configuration ?? {} });
        return readDeployablesAgain();
      },
    }),
  );
  const error = plan.error ?? redeploy.error;
  const refused = useMemo(() => refusedOf(error, configSchema), [error, configSchema]);
  const isReady = appId !== null && canDeployment(status, "redeploy");
  const ask = (fields: FormData): void => {
    redeploy.reset();
    plan.mutate({ deploymentId, configuration: configOf(configSchema, fields), upgrade: fields.get("upgrade") !== null });
  };
  return (
    <>
      <Panel title={text.tabs.change}>
        <ChangedElsewhere of={edition} />
        <Form key={shown.version} submit={text.plan} busy={plan.isPending} error={refused.rest} onSubmit={ask}>
          <ConfigFields schema={configSchema} config={shown.config} refused={refused} />
          {version === templateVersion ? null : <Check name="upgrade" label={text.upgrade(version)} />}
        </Form>
        <p role="status">{redeploy.isSuccess && plan.data === undefined ? text.ordered : ""}</p>
      </Panel>
      {plan.data === undefined ? null : (
        <Planned plan={plan.data}>
          {isReady ? (
            <div className="row">
              <button type="button" data-kind="primary" disabled={redeploy.isPending} onClick={() => redeploy.mutate(plan.variables)}>
                {text.deploy}
              </button>
            </div>
          ) : (
            <p>{appId === null ? text.noDevice : text.cannotChange}</p>
          )}
        </Planned>
      )}
    </>
  );
};

export const DeploymentChange = ({ of }: { readonly of: Deployment }) => {
  const { template: templateId } = of;
  const template = useQuery({
    ...api.apps.template.queryOptions({ templateId: templateId ?? "" }),
    refetchInterval: false,
    enabled: templateId !== null,
  });
  if (templateId === null) return <Empty>{text.group}</Empty>;
  return (
    <Loaded read={template} rows={6}>
      {(found) => <Change of={of} template={found} />}
    </Loaded>
  );
};
