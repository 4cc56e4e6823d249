// What people do with an app, as far as its state and their role allow it.
import type { App } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { canApp } from "../../parts/app-verbs.ts";
import { RemoveApp } from "../../parts/remove-app.tsx";
import { Failure } from "../../ui/failure.tsx";
import { text } from "./text.ts";

export const readAppsAgain = async (): Promise<void> => {
  await Promise.all([queryClient.invalidateQueries(api.apps.pathFilter()), queryClient.invalidateQueries(api.deployments.pathFilter())]);
};

const Remove = ({ app: { appId, name }, onClose }: { readonly app: App; readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.apps.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/apps" });
        await readAppsAgain();
      },
    }),
  );
  return (
    <RemoveApp
      word={text.remove}
      what={text.removal}
      name={name}
      onClose={onClose}
      action={remove}
      onConfirm={(keepVolumes) => remove.mutate({ appId, keepVolumes })}
    />
  );
};

/** The version that the catalogue has, if it is another one. */
const useOtherVersion = ({ appType, templateVersion }: App): string | null => {
  const { data } = useQuery({ ...api.apps.template.queryOptions({ templateId: appType }), refetchInterval: false });
  return data === undefined || data.version === templateVersion ? null : data.version;
};

export const AppActions = ({ app }: { readonly app: App }) => {
  const { appId, status } = app;
  const may = useMay();
  const [removing, setRemoving] = useState(false);
  const version = useOtherVersion(app);
  const options = { onSuccess: readAppsAgain };
  const start = useMutation(api.apps.start.mutationOptions(options));
  const stop = useMutation(api.apps.stop.mutationOptions(options));
  const restart = useMutation(api.apps.restart.mutationOptions(options));
  const update = useMutation(api.apps.upgrade.mutationOptions(options));
  const verbs = [
    ["start", text.start, start],
    ["stop", text.stop, stop],
    ["restart", text.restart, restart],
    ...(version === null ? [] : [["update", text.update(version), update] as const]),
  ] as const;
  const busy = verbs.some(([, , { isPending }]) => isPending);
  const failed = verbs.find(([, , { error }]) => error !== null)?.[2];
  return (
    <>
      {may("app:update")
        ? verbs.map(([verb, word, action]) =>
            canApp(status, verb) ? (
              <button
                key={verb}
                type="button"
                disabled={busy}
                onClick={() => {
                  for (const [, , each] of verbs) each.reset();
                  action.mutate({ appId });
                }}
              >
                {word}
              </button>
            ) : null,
          )
        : null}
      {may("app:delete") && canApp(status, "remove") ? (
        <button type="button" data-kind="danger" onClick={() => setRemoving(true)}>
          {text.remove}
        </button>
      ) : null}
      {failed === undefined ? null : <Failure key={failed.submittedAt} error={failed.error} />}
      {removing ? <Remove app={app} onClose={() => setRemoving(false)} /> : null}
    </>
  );
};
