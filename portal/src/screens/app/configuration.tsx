// The app's configuration in the form of its application: saving it updates the app.
import type { App, AppTemplate } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { configOf, refusedOf } from "../../parts/app-config.ts";
import { canApp } from "../../parts/app-verbs.ts";
import { ConfigFields } from "../../parts/config-fields.tsx";
import { readDeployablesAgain } from "../../parts/deployables.tsx";
import { Form } from "../../ui/dialog.tsx";
import { ChangedElsewhere, useEdition } from "../../ui/edition.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Value } from "../../ui/value.tsx";
import { text } from "./text.ts";

const Change = ({ app, schema }: { readonly app: App; readonly schema: AppTemplate["configSchema"] }) => {
  const { appId, status, config, revision } = app;
  // Other changes of the app raise its version, too; only a revision changes the configuration.
  const edition = useEdition({ version: revision, config });
  const { shown, show } = edition;
  const change = useMutation(
    api.apps.change.mutationOptions({
      onSuccess: (next) => {
        show({ version: next.revision, config: next.config });
        return readDeployablesAgain();
      },
    }),
  );
  const refused = useMemo(() => refusedOf(change.error, schema), [change.error, schema]);
  const isReady = canApp(status, "update");
  return (
    <>
      <ChangedElsewhere of={edition} />
      <Form
        key={shown.version}
        submit={text.save}
        busy={change.isPending}
        error={refused.rest}
        disabled={!isReady}
        onSubmit={(fields) => change.mutate({ appId, config: configOf(schema, fields) })}
      >
        <ConfigFields schema={schema} config={shown.config} refused={refused} />
        <p role="status">{isReady ? (change.isSuccess ? text.saved : "") : text.cannotUpdate}</p>
      </Form>
    </>
  );
};

export const AppConfiguration = ({ app }: { readonly app: App }) => {
  const may = useMay();
  const template = useQuery({ ...api.apps.template.queryOptions({ templateId: app.appType }), refetchInterval: false });
  return (
    <Panel title={text.tabs.configuration}>
      {may("app:update") ? (
        <Loaded read={template} rows={6}>
          {({ configSchema }) => <Change app={app} schema={configSchema} />}
        </Loaded>
      ) : (
        <Value label={text.values} value={app.config} />
      )}
    </Panel>
  );
};
