// What people do with an app, as far as its state and their role allow it.
import type { App } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { canApp } from "../../parts/app-verbs.ts";
import { readDeployablesAgain, VerbButtons } from "../../parts/deployables.tsx";
import { RemoveApp } from "../../parts/remove-app.tsx";
import { text } from "./text.ts";

const Remove = ({ app: { appId, name }, onClose }: { readonly app: App; readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const remove = useMutation(
    api.apps.remove.mutationOptions({
      onSuccess: async () => {
        await navigate({ to: "/apps" });
        await readDeployablesAgain();
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
  const options = { onSuccess: readDeployablesAgain };
  const start = useMutation(api.apps.start.mutationOptions(options));
  const stop = useMutation(api.apps.stop.mutationOptions(options));
  const restart = useMutation(api.apps.restart.mutationOptions(options));
  const update = useMutation(api.apps.upgrade.mutationOptions(options));
  const changes = [
    ["start", text.start, start],
    ["stop", text.stop, stop],
    ["restart", text.restart, restart],
    ...(version === null ? [] : [["update", text.update(version), update] as const]),
  ] as const;
  const verbs = changes.map(([verb, word, change]) => ({
    word,
    change,
    isOffered: may("app:update") && canApp(status, verb),
    run: () => change.mutate({ appId }),
  }));
  return (
    <>
      <VerbButtons verbs={verbs} />
      {may("app:delete") && canApp(status, "remove") ? (
        <button type="button" data-kind="danger" onClick={() => setRemoving(true)}>
          {text.remove}
        </button>
      ) : null}
      {removing ? <Remove app={app} onClose={() => setRemoving(false)} /> : null}
    </>
  );
};
