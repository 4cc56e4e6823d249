// The app's configuration in the form of its application. What somebody types is a change with its difference, until they apply it.
import type { AppDetails, AppTemplate } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api } from "../../api/client.ts";
import { configOf, refusedOf } from "../../parts/apps/app-config.ts";
import { canApp } from "../../parts/apps/app-verbs.ts";
import { ConfigFields } from "../../parts/config-fields.tsx";
import { Form } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { Value } from "../../ui/value.tsx";
import { discard, keep, useApply, useDraft, useMayChange } from "./draft.ts";
import { DraftDiff } from "./pending.tsx";
import { text } from "./text.ts";

const UPGRADE = "upgrade";

const Change = ({ app, template: { configSchema, version } }: { readonly app: AppDetails; readonly template: AppTemplate }) => {
  const { deploymentId, status, config, revision, templateVersion } = app;
  const draft = useDraft(app);
  const apply = useApply(app);
  const [discarded, setDiscarded] = useState(0);
  const refused = useMemo(() => refusedOf(apply.error, configSchema), [apply.error, configSchema]);
  const isReady = canApp(status, "update");
  const typed = (form: HTMLFormElement) => {
    const fields = new FormData(form);
    return { config: configOf(configSchema, fields), version: fields.get(UPGRADE) === null ? null : version };
  };
  return (
    <div
      onInput={({ target }) => {
        const form = target instanceof Element ? target.closest("form") : null;
        if (form !== null) keep(app, typed(form), draft?.revision);
      }}
    >
      <Form
        // New fields when the app has other values, but not under the hands of somebody who types.
        key={`${draft?.revision ?? revision}.${discarded}`}
        submit={text.apply}
        busy={apply.isPending}
        error={refused.rest}
        disabled={!isReady || draft === undefined}
        onSubmit={() => draft !== undefined && apply.mutate(draft)}
        beside={
          draft === undefined ? null : (
            <button
              type="button"
              onClick={() => {
                discard(app);
                apply.reset();
                setDiscarded(discarded + 1);
              }}
            >
              {text.discard}
            </button>
          )
        }
      >
        <ConfigFields schema={configSchema} config={draft?.config ?? config} refused={refused} />
        {version === templateVersion || deploymentId === null ? null : (
          <Check name={UPGRADE} label={text.upgrade(version)} defaultChecked={draft?.version === version} />
        )}
        {draft === undefined ? null : <DraftDiff app={app} draft={draft} />}
        <p role="status">{isReady ? (apply.isSuccess && draft === undefined ? text.ordered : "") : text.cannotUpdate}</p>
      </Form>
    </div>
  );
};

export const AppConfiguration = ({ app }: { readonly app: AppDetails }) => {
  const mayChange = useMayChange(app);
  const template = useQuery({ ...api.apps.template.queryOptions({ templateId: app.appType }), refetchInterval: false });
  return (
    <Panel title={text.tabs.configuration}>
      {mayChange ? (
        <Loaded read={template} rows={6}>
          {(found) => <Change key={app.appId} app={app} template={found} />}
        </Loaded>
      ) : (
        <Value label={text.values} value={app.config} />
      )}
    </Panel>
  );
};
