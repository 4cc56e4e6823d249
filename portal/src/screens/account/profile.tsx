// The person's name, language and time zone.
import type { Account } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { api, queryClient } from "../../api/client.ts";
import { Form, TextField } from "../../ui/dialog.tsx";
import { ChangedElsewhere, useEdition } from "../../ui/edition.tsx";
import { TimeZoneField } from "../../ui/fields/time-zone-field.tsx";
import { Facts, Panel } from "../../ui/parts.tsx";
import { text } from "./text.ts";

const given = (fields: FormData, name: string): string | null => String(fields.get(name)).trim() || null;

export const Profile = ({ of }: { readonly of: Account }) => {
  const edition = useEdition(of);
  const { shown, show } = edition;
  const update = useMutation(
    api.account.update.mutationOptions({
      onSuccess: (account) => {
        show(account);
        return queryClient.invalidateQueries(api.account.pathFilter());
      },
    }),
  );
  return (
    <Panel title={text.profile}>
      <Facts of={{ Email: of.email, Id: <span className="mono">{of.userId}</span> }} />
      <Form
        key={shown.version}
        submit={text.save}
        busy={update.isPending}
        error={update.error}
        onSubmit={(fields) =>
          update.mutate({ version: shown.version, name: given(fields, "name"), locale: given(fields, "locale"), timezone: given(fields, "timezone") })
        }
      >
        <TextField label={text.name} name="name" maxLength={100} defaultValue={shown.name ?? ""} />
        <TextField label={text.locale} name="locale" hint={text.localeHint} maxLength={35} defaultValue={shown.locale ?? ""} placeholder={navigator.language} />
        <TimeZoneField label={text.timezone} name="timezone" defaultValue={shown.timezone ?? ""} />
      </Form>
      <ChangedElsewhere of={edition} />
      <p role="status">{update.isSuccess ? text.saved : ""}</p>
    </Panel>
  );
};
