// One update policy: what it says, and what it would do now.
import type { UpdatePolicy } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, mooring, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { DetailPage, Pill } from "../../ui/detail-page.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { ChangedElsewhere, useEdition } from "../../ui/edition.tsx";
import { Copyable, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { Ago } from "../../ui/time.tsx";
import { phasesText } from "./policy-fields.ts";
import { PolicyForm } from "./policy-form.tsx";
import { Preview } from "./preview.tsx";
import { subjectText, text } from "./text.ts";

const route = getRouteApi("/rollouts/policies/$updatePolicyId");
const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.rollouts.pathFilter());

interface DialogProps {
  readonly policy: UpdatePolicy;
  readonly onClose: () => void;
}

const Change = ({ policy, onClose }: DialogProps) => {
  const edition = useEdition(policy);
  const { updatePolicyId, version } = edition.shown;
  const change = useMutation(
    api.rollouts.updatePolicy.mutationOptions({
      onSuccess: async () => {
        onClose();
        await readAgain();
      },
    }),
  );
  return (
    <Dialog title={text.change} open onClose={onClose}>
      <ChangedElsewhere of={edition} />
      <PolicyForm
        key={version}
        of={edition.shown}
        submit={text.save}
        action={change}
        onSubmit={({ subject: _, ...wishes }) => change.mutate({ updatePolicyId, version, ...wishes })}
        onCancel={onClose}
      />
    </Dialog>
  );
};

const Remove = ({ policy: { updatePolicyId, name }, onClose }: DialogProps) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.rollouts.removePolicy.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/rollouts/policies" });
        queryClient.removeQueries(api.rollouts.getPolicy.queryFilter({ updatePolicyId }));
        await readAgain();
      },
    }),
  );
  return (
    <Confirm title={text.remove} submit={text.remove} open onClose={onClose} typed={name} action={remove} onConfirm={() => remove.mutate({ updatePolicyId })}>
      {text.removal}
    </Confirm>
  );
};

const settingsOf = ({
  updatePolicyId: _id,
  tenantId: _tenant,
  name: _name,
  description: _description,
  enabled: _enabled,
  warnings: _warnings,
  createdBy: _by,
  version: _version,
  createdAt: _created,
  updatedAt: _updated,
  ...settings
}: UpdatePolicy) => settings;

const Does = ({ policy }: Pick<DialogProps, "policy">) => {
  const { actor: _, ...settings } = settingsOf(policy) as ReturnType<typeof settingsOf> & { readonly actor?: unknown }; // as: a read adds who made it
  const queryFn = () => mooring.rollouts.previewPolicy.query({ policy: settings });
  const read = useQuery({ queryKey: ["update policy", policy.updatePolicyId, policy.version], queryFn });
  return <Loaded read={read}>{(preview) => <Preview of={preview} />}</Loaded>;
};

export const PolicyScreen = () => {
  const { updatePolicyId } = route.useParams() as Pick<UpdatePolicy, "updatePolicyId">; // as: the gateway answers others with 404
  const may = useMay();
  const [opened, setOpened] = useState<"change" | "remove" | null>(null);
  const read = useQuery(api.rollouts.getPolicy.queryOptions({ updatePolicyId }));
  const policy = read.data;
  const actions =
    policy !== undefined && may("fleet:write") ? (
      <>
        <button type="button" data-kind="danger" onClick={() => setOpened("remove")}>
          {text.remove}
        </button>
        <button type="button" data-kind="primary" onClick={() => setOpened("change")}>
          {text.change}
        </button>
      </>
    ) : undefined;
  return (
    <DetailPage
      path={[
        <Link key="policies" to="/rollouts/policies">
          {text.policies}
        </Link>,
      ]}
      title={policy?.name ?? text.policy}
      pill={policy?.enabled === false ? <Pill tone="idle">{text.disabled}</Pill> : undefined}
      actions={actions}
    >
      <Loaded read={read}>
        {(shown) => (
          <>
            <Panel title={text.settings}>
              <Facts
                of={{
                  Id: <Copyable text={updatePolicyId} />,
                  [text.subject]: subjectText(shown.subject),
                  [text.version]: shown.targetVersion ?? text.newest,
                  [text.phases]: phasesText(shown.phases),
                  [text.parallel]: shown.maxParallel,
                  [text.threshold]: `${shown.failureThreshold.percent} %`,
                  [text.onFailure]: text.onFailures[shown.onFailure],
                  [text.offline]: text.offlines[shown.offlinePolicy],
                  [text.changed]: <Ago at={shown.updatedAt} />,
                }}
              />
            </Panel>
            <Does policy={shown} />
            {opened === "change" ? <Change policy={shown} onClose={() => setOpened(null)} /> : null}
            {opened === "remove" ? <Remove policy={shown} onClose={() => setOpened(null)} /> : null}
          </>
        )}
      </Loaded>
    </DetailPage>
  );
};
