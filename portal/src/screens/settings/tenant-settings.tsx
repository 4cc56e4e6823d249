// The settings of the tenant, each within its bounds.
import type { TenantSettings } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Field, Form, TextField } from "../../ui/dialog.tsx";
import { ChangedElsewhere, useEdition } from "../../ui/edition.tsx";
import { TimeZoneField } from "../../ui/fields/time-zone-field.tsx";
import { wordsOf } from "../../ui/fields/trim-input.ts";
import { Loaded, Panel } from "../../ui/parts.tsx";
import { text } from "./text.ts";

const numberOf = (typed: string): number | null => (typed === "" ? null : Number(typed));

const SettingsForm = ({ of, isOpen }: { readonly of: TenantSettings; readonly isOpen: boolean }) => {
  const edition = useEdition(of);
  const { shown, show } = edition;
  const update = useMutation(
    api.tenants.updateSettings.mutationOptions({
      onSuccess: (settings) => {
        show(settings);
        return queryClient.invalidateQueries(api.tenants.pathFilter());
      },
    }),
  );
  const send = (fields: FormData): void => {
    const typed = (name: string): string => String(fields.get(name)).trim();
    update.mutate({
      tenantId: of.tenantId,
      version: shown.version,
      offlineAfterSeconds: numberOf(typed("offlineAfter")),
      defaultTimezone: typed("timezone"),
      allowedReturnHosts: wordsOf(typed("hosts")),
    });
  };
  return (
    <>
      <Form key={shown.version} submit={text.save} busy={update.isPending} error={update.error} disabled={!isOpen} onSubmit={send}>
        <TextField
          label={text.offlineAfter}
          name="offlineAfter"
          type="number"
          min={60}
          max={3_600}
          hint={text.offlineAfterHint}
          defaultValue={shown.offlineAfterSeconds ?? ""}
        />
        <TimeZoneField label={text.timezone} name="timezone" required defaultValue={shown.defaultTimezone} />
        <Field label={text.hosts} hint={text.hostsHint}>
          {(id, hintId) => (
            <textarea id={id} aria-describedby={hintId} name="hosts" rows={3} maxLength={6_000} defaultValue={shown.allowedReturnHosts.join("\n")} />
          )}
        </Field>
      </Form>
      <ChangedElsewhere of={edition} />
      <p role="status">{update.isSuccess ? text.saved : ""}</p>
    </>
  );
};

export const TenantSettingsPanel = ({ tenantId, isOpen }: { readonly tenantId: string; readonly isOpen: boolean }) => {
  const settings = useQuery(api.tenants.settings.queryOptions({ tenantId }));
  return (
    <Panel title={text.settings}>
      <Loaded read={settings} rows={5}>
        {(stored) => <SettingsForm of={stored} isOpen={isOpen} />}
      </Loaded>
    </Panel>
  );
};
