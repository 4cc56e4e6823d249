// The form of a backup destination. Credentials are never shown, so they are typed again or stay.
import type { BackupDestination } from "@mooring/client";
import { useState } from "react";
import type { mooring } from "../../api/client.ts";
import { Field, Form, TextField } from "../../ui/dialog.tsx";
import { text } from "./text.ts";

export type Wishes = Pick<Parameters<typeof mooring.backupDestinations.create.mutate>[0], "name" | "kind" | "settings" | "credentials">;

interface DestinationFormProps {
  readonly of?: BackupDestination;
  readonly submit: string;
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onSubmit: (wishes: Wishes) => void;
  readonly onCancel: () => void;
}

const typedIn = (fields: FormData, names: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name) => [name, String(fields.get(name) ?? "").trim()]).filter(([, value]) => value !== ""));

export const DestinationForm = ({ of, submit, action, onSubmit, onCancel }: DestinationFormProps) => {
  const [kind, setKind] = useState<BackupDestination["kind"]>(of?.kind ?? "s3");
  const send = (fields: FormData): void => {
    const settings = typedIn(
      fields,
      text.settings[kind].map(([name]) => name),
    );
    const credentials = typedIn(
      fields,
      text.credentials[kind].map(([name]) => name),
    );
    onSubmit({ name: String(fields.get("name")), kind, settings, ...(Object.keys(credentials).length === 0 ? {} : { credentials }) });
  };
  const stored: Readonly<Record<string, string | null>> = of?.settings ?? {};
  return (
    <Form submit={submit} busy={action.isPending} error={action.error} onSubmit={send} onCancel={onCancel}>
      <TextField label={text.name} name="name" required maxLength={100} defaultValue={of?.name} />
      {of === undefined ? (
        <Field label={text.kind}>
          {(id) => (
            <select id={id} value={kind} onChange={({ target }) => setKind(text.kinds.find(([value]) => value === target.value)?.[0] ?? "s3")}>
              {text.kinds.map(([value, word]) => (
                <option key={value} value={value}>
                  {word}
                </option>
              ))}
            </select>
          )}
        </Field>
      ) : null}
      {text.settings[kind].map(([name, label, hint]) => (
        <TextField
          key={name}
          label={label}
          name={name}
          maxLength={1_000}
          defaultValue={stored[name] ?? undefined}
          {...(hint === "" ? {} : { hint })}
          required={["endpoint", "bucket", "url"].includes(name)}
        />
      ))}
      {text.credentials[kind].map(([name, label]) => (
        <TextField
          key={name}
          label={label}
          name={name}
          type="password"
          maxLength={1_000}
          {...(of?.hasCredentials === true ? { hint: text.credentialsKept } : {})}
        />
      ))}
    </Form>
  );
};
