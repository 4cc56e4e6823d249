// What people do with a deployment, as far as its state and their role allow it.
import type { Deployment } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { canDeployment } from "../../parts/app-verbs.ts";
import { readDeployablesAgain, VerbButtons } from "../../parts/deployables.tsx";
import { RemoveApp } from "../../parts/remove-app.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { text } from "./text.ts";

interface DialogProps {
  readonly of: Deployment;
  readonly onClose: () => void;
}

const Remove = ({ of: { deploymentId, name, appId }, onClose }: DialogProps) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.deployments.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/deployments" });
        await readDeployablesAgain();
      },
    }),
  );
  if (appId === null)
    return (
      <Confirm
        title={`${text.remove}?`}
        open
        onClose={onClose}
        submit={text.remove}
        back={text.back}
        action={remove}
        onConfirm={() => remove.mutate({ deploymentId })}
      >
        {text.removalOfNone}
      </Confirm>
    );
  return (
    <RemoveApp
      word={text.remove}
      what={text.removal}
      name={name}
      onClose={onClose}
      action={remove}
      onConfirm={(keepVolumes) => remove.mutate({ deploymentId, keepVolumes })}
    />
  );
};

const Cancel = ({ of: { deploymentId }, onClose }: DialogProps) => {
  const cancel = useMutation(
    api.deployments.cancel.mutationOptions({
      onSuccess: () => {
        onClose();
        return readDeployablesAgain();
      },
    }),
  );
  return (
    <Confirm
      title={`${text.cancel}?`}
      open
      onClose={onClose}
      submit={text.cancel}
      back={text.back}
      action={cancel}
      onConfirm={() => cancel.mutate({ deploymentId })}
    >
      {text.cancelWhat}
    </Confirm>
  );
};

const DIALOGS = { cancel: Cancel, remove: Remove } as const;

/** The verbs that need no question. */
const Verbs = ({ of: { deploymentId, status, appId, currentRevision } }: { readonly of: Deployment }) => {
  const options = { onSuccess: readDeployablesAgain };
  const start = useMutation(api.deployments.start.mutationOptions(options));
  const stop = useMutation(api.deployments.stop.mutationOptions(options));
  const redeploy = useMutation(api.deployments.redeploy.mutationOptions(options));
  const rollBack = useMutation(api.deployments.rollback.mutationOptions(options));
  if (appId === null) return null;
  // Any other way back is chosen among the revisions.
  const canUndo = status === "failed" && currentRevision !== null;
  const changes = [
    ["start", start],
    ["stop", stop],
    ["redeploy", redeploy],
    ["rollBack", rollBack],
  ] as const;
  const verbs = changes.map(([verb, change]) => ({
    word: text[verb],
    change,
    isOffered: canDeployment(status, verb) && (verb !== "rollBack" || canUndo),
    run: () => change.mutate({ deploymentId }),
  }));
  return <VerbButtons verbs={verbs} />;
};

export const DeploymentActions = ({ of }: { readonly of: Deployment }) => {
  const { status, isDefault, template } = of;
  const may = useMay();
  const [opened, setOpened] = useState<keyof typeof DIALOGS | null>(null);
  const Shown = opened === null ? null : DIALOGS[opened];
  return (
    <>
      {may("deployment:deploy") ? <Verbs of={of} /> : null}
      {may("deployment:deploy") && template !== null && canDeployment(status, "cancel") ? (
        <button type="button" onClick={() => setOpened("cancel")}>
          {text.cancel}
        </button>
      ) : null}
      {may("deployment:delete") && !isDefault && canDeployment(status, "remove") ? (
        <button type="button" data-kind="danger" onClick={() => setOpened("remove")}>
          {text.remove}
        </button>
      ) : null}
      {Shown === null ? null : <Shown of={of} onClose={() => setOpened(null)} />}
    </>
  );
};
