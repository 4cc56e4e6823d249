// The button that orders a backup of an app.
import type { App } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Failure } from "../../ui/failure.tsx";
import { text } from "./backup-text.ts";

export const readBackupsAgain = (): Promise<void> => queryClient.invalidateQueries(api.backups.pathFilter());

interface BackUpNowProps {
  readonly app: Pick<App, "appId" | "deviceId">;
  readonly primary?: boolean;
}
export const BackUpNow = ({ app: { appId, deviceId }, primary = false }: BackUpNowProps) => {
  const may = useMay();
  const navigate = useNavigate();
  const create = useMutation(
    api.backups.create.mutationOptions({
      onSuccess: async ({ backupId }) => {
        await readBackupsAgain();
        if (may("backup:read")) await navigate({ to: "/backups/$backupId", params: { backupId } });
      },
    }),
  );
  if (!may("backup:create")) return null;
  return (
    <>
      {create.error === null ? null : <Failure key={create.submittedAt} error={create.error} />}
      <button
        type="button"
        {...(primary ? { "data-kind": "primary" } : { "data-size": "small" })}
        disabled={create.isPending}
        onClick={() => create.mutate({ appId, deviceId })}
      >
        {text.now}
      </button>
    </>
  );
};
