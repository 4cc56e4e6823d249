// The question before an app goes back: what would differ then, and what happens to its data.
import type { AppDetails } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { mooring } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { canApp } from "../../parts/apps/app-verbs.ts";
import { readDeployablesAgain } from "../../parts/apps/deployables.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { Diff } from "../../ui/diff.tsx";
import { draftRows } from "./draft.ts";
import { text } from "./text.ts";

/** A revision of the app's deployment, or a snapshot of the app. */
export interface Former {
  readonly revision: number;
  readonly snapshotId?: string;
  readonly version: string;
  readonly config: Record<string, unknown>;
}

/** Whether the app can go back now, and the person may order it: to a snapshot if it has no deployment. */
export const useMayRollBack = ({ deploymentId, status }: AppDetails, toSnapshot = deploymentId === null): boolean => {
  const may = useMay();
  return may(toSnapshot ? "app:rollback" : "deployment:deploy") && canApp(status, "rollBack");
};

interface RollBackProps {
  readonly app: AppDetails;
  readonly to: Former;
  readonly onClose: () => void;
}
export const RollBack = ({ app, to, onClose }: RollBackProps) => {
  const { appId, deploymentId, templateVersion, revision } = app;
  const rollBack = useMutation({
    mutationFn: async ({ revision: toRevision, snapshotId }: Former): Promise<unknown> =>
      snapshotId === undefined
        ? mooring.deployments.rollback.mutate({ deploymentId: deploymentId ?? "", toRevision })
        : mooring.apps.rollback.mutate({ appId, snapshotId }),
    onSuccess: () => {
      onClose();
      return readDeployablesAgain();
    },
  });
  const rows = draftRows(app, to);
  const word = text.rollTo(to.revision, revision);
  return (
    <Dialog title={`${word}?`} open onClose={onClose}>
      <Form
        submit={text.roll(to.revision, revision)}
        busy={rollBack.isPending}
        error={rollBack.error}
        onSubmit={() => rollBack.mutate(to)}
        onCancel={onClose}
        back={text.back}
      >
        {rows.length === 0 ? <p className="muted">{text.same}</p> : <Diff caption={text.planned} rows={rows} before={text.now} after={text.later} />}
        <p>{text.dataStays}</p>
        {to.version === templateVersion ? null : <p>{text.dataOfVersion(templateVersion, to.version)}</p>}
        <p className="muted">{text.comesBack(revision)}</p>
      </Form>
    </Dialog>
  );
};
