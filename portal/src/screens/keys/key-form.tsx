// The form of an API key: its name and what limits it. Its role and its expiry are chosen once, when it is created.
import type { ApiKey } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useMay, useMe } from "../../api/session.ts";
import { isComplete, type Selector, SelectorField } from "../../parts/selector-field.tsx";
import { Field, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Check, Checks } from "../../ui/fields/checks.tsx";
import { wordsOf } from "../../ui/fields/trim-input.ts";
import { text } from "./text.ts";

const ROLES = ["viewer", "operator", "admin", "owner"] as const;
export type KeyRole = (typeof ROLES)[number];

export interface KeyWishes {
  readonly name: string;
  readonly role: KeyRole;
  readonly scopes: string[];
  readonly selector: Selector | null;
  readonly ipAllowlist: string[];
  readonly expiresInDays: number | null;
}

/** The roles and permissions that this person may give to a key: nobody gives more than they have. */
const useCatalogue = (role: KeyRole) => {
  const { permissions: mine } = useMe();
  const enabled = useMay()("role:read");
  const catalogue = { staleTime: 600_000, refetchInterval: false as const, enabled };
  const roles = useQuery({ ...api.roles.list.queryOptions({}), ...catalogue }).data?.items ?? [];
  const permissions = useQuery({ ...api.roles.permissions.queryOptions({}), ...catalogue }).data?.items ?? [];
  const heldBy = (key: string): readonly string[] => roles.find((each) => each.key === key)?.permissions ?? [];
  return {
    roles: ROLES.filter((each) => heldBy(each).every((permission) => mine.includes(permission))),
    scopes: permissions.filter(({ key }) => heldBy(role).includes(key)),
  };
};

export interface KeyFormProps {
  /** Undefined for a new key. */
  readonly of?: ApiKey;
  readonly submit: string;
  readonly action: { readonly isPending: boolean; readonly error: unknown };
  readonly onSubmit: (wishes: KeyWishes) => void;
  readonly onCancel: () => void;
}

export const KeyForm = ({ of, submit, action, onSubmit, onCancel }: KeyFormProps) => {
  const [role, setRole] = useState<KeyRole>(of?.role ?? "operator");
  const [selector, setSelector] = useState<Selector | null>(of?.selector ?? null);
  const { roles, scopes } = useCatalogue(role);
  const send = (fields: FormData): void => {
    const days = String(fields.get("expires") ?? "");
    onSubmit({
      name: String(fields.get("name")),
      role,
      scopes: fields.getAll("scope").map(String),
      selector,
      ipAllowlist: wordsOf(String(fields.get("addresses"))),
      expiresInDays: days === "" ? null : Number(days),
    });
  };
  return (
    <Form submit={submit} busy={action.isPending} error={action.error} onSubmit={send} onCancel={onCancel} disabled={!isComplete(selector)}>
      <TextField label="Name" name="name" required maxLength={100} defaultValue={of?.name} />
      {of === undefined ? (
        <Field label="Role">
          {(id) => (
            <select id={id} value={role} onChange={({ target }) => setRole(target.value as KeyRole)}>
              {roles.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          )}
        </Field>
      ) : null}
      {scopes.length === 0 ? null : (
        <Checks key={role} label={text.scopesField} hint={text.scopesHint}>
          {scopes.map(({ key, description }) => (
            <Check key={key} name="scope" value={key} label={key} hint={description} defaultChecked={of?.scopes.includes(key) ?? false} />
          ))}
        </Checks>
      )}
      <SelectorField label={text.devices} value={selector} onChange={setSelector} />
      <Field label={text.addresses} hint={text.addressesHint}>
        {(id, hintId) => <textarea id={id} aria-describedby={hintId} name="addresses" rows={2} maxLength={1_000} defaultValue={of?.ipAllowlist.join("\n")} />}
      </Field>
      {of === undefined ? <SelectField label={text.expires} name="expires" defaultValue="90" options={text.expiries} /> : null}
    </Form>
  );
};
