// The secrets of an app: people set and remove them here, and nobody reads them.
import type { AppDetails, AppTemplate } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { secretField, secretsOf } from "../../parts/apps/app-config.ts";
import { readDeployablesAgain } from "../../parts/apps/deployables.ts";
import { Form, TextField } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { Empty, Loaded, Panel } from "../../ui/parts.tsx";
import { text } from "./text.ts";

const removalField = (name: string): string => `remove.${name}`;

const SetSecrets = ({ app: { appId, secretKeys }, secrets }: { readonly app: AppDetails; readonly secrets: AppTemplate["secrets"] }) => {
  const set = useMutation({ ...api.apps.setSecrets.mutationOptions({ onSuccess: readDeployablesAgain }), gcTime: 0 });
  const send = (fields: FormData): void => {
    const removed = secrets.filter(({ name }) => fields.get(removalField(name)) !== null).map(({ name }) => [name, null] as const);
    set.mutate({ appId, secrets: { ...secretsOf(secrets, fields), ...Object.fromEntries(removed) } });
  };
  return (
    <>
      <p>{text.secretsHint}</p>
      {/* A new form after each change, so that no value stays on the page. */}
      <Form key={set.data?.secretsVersion ?? 0} submit={text.setSecrets} busy={set.isPending} error={set.error} onSubmit={send}>
        {secrets.map(({ name, title, description, required }) => {
          const isSet = secretKeys.includes(name);
          return (
            <div key={name}>
              <TextField
                label={title}
                name={secretField(name)}
                type="password"
                hint={[description, isSet ? text.keep : text.notSet].filter((each) => each !== null).join(" ")}
              />
              {isSet && !required ? <Check name={removalField(name)} label={text.clear(title)} /> : null}
            </div>
          );
        })}
      </Form>
      <p role="status">{set.isSuccess ? text.stored : ""}</p>
    </>
  );
};

export const AppSecrets = ({ app }: { readonly app: AppDetails }) => {
  const template = useQuery({ ...api.apps.template.queryOptions({ templateId: app.appType }), refetchInterval: false });
  return (
    <Panel title={text.tabs.secrets}>
      <Loaded read={template} rows={4}>
        {({ secrets }) => (secrets.length === 0 ? <Empty>{text.noSecrets}</Empty> : <SetSecrets app={app} secrets={secrets} />)}
      </Loaded>
    </Panel>
  );
};
