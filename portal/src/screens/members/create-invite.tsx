// Invites one person or several, and shows the links where there is no mail server.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { isComplete, type Selector, SelectorField } from "../../parts/selector-field.tsx";
import { Dialog, Field, Form, SelectField } from "../../ui/dialog.tsx";
import { Copyable, Loaded } from "../../ui/parts.tsx";
import css from "./members.module.css";
import { text } from "./text.ts";

interface Sent {
  readonly email: string;
  readonly link?: string | undefined;
  readonly message?: string | null;
}

const Results = ({ sent, onClose }: { readonly sent: readonly Sent[]; readonly onClose: () => void }) => {
  const refused = sent.filter(({ message }) => message != null);
  const links = sent.filter(({ link }) => link !== undefined);
  return (
    <div className="stack">
      {links.length > 0 ? <p>{text.noMail}</p> : refused.length < sent.length ? <p>{text.mailed}</p> : null}
      <ul className={css["links"]}>
        {links.map(({ email, link = "" }) => (
          <li key={email}>
            <strong>{email}</strong>
            <Copyable text={link} />
          </li>
        ))}
        {refused.map(({ email, message }) => (
          <li key={email} role="alert">
            <strong>{email}</strong>
            {message}
          </li>
        ))}
      </ul>
      <div className="row">
        <button type="button" data-kind="primary" onClick={onClose}>
          {text.done}
        </button>
      </div>
    </div>
  );
};

export const CreateInvite = ({ onClose }: { readonly onClose: () => void }) => {
  const roles = useQuery(api.roles.list.queryOptions({}));
  const [selector, setSelector] = useState<Selector | null>(null);
  const create = useMutation(api.invites.create.mutationOptions({ onSuccess: () => void queryClient.invalidateQueries(api.invites.pathFilter()) }));
  const send = (fields: FormData): void => {
    const emails = String(fields.get("emails"))
      .split(/[\s,;]+/)
      .filter((each) => each !== "");
    const message = String(fields.get("message")).trim();
    create.mutate({
      ...(emails.length > 1 ? { emails } : { email: emails[0] ?? "" }),
      roleId: String(fields.get("role")),
      selector,
      message: message === "" ? null : message,
      expiresInDays: Number(fields.get("life")),
    });
  };
  const made = create.data;
  return (
    <Dialog title={text.invite} open onClose={onClose}>
      {made === undefined ? (
        <Loaded read={roles}>
          {({ items }) => (
            <Form submit={text.send} busy={create.isPending} error={create.error} disabled={!isComplete(selector)} onSubmit={send} onCancel={onClose}>
              <Field label={text.emails} hint={text.emailsHint}>
                {(id, hintId) => <textarea id={id} name="emails" aria-describedby={hintId} required rows={2} maxLength={6_000} />}
              </Field>
              <SelectField
                label={text.role}
                name="role"
                defaultValue="viewer"
                // The invited person reads the key of a built-in role, but nobody can read an id.
                options={items.map(({ roleId, key, name, builtIn }) => [builtIn ? key : roleId, name] as const)}
              />
              <SelectorField label={text.devices} value={selector} onChange={setSelector} />
              <Field label={text.message} hint={text.messageHint}>
                {(id, hintId) => <textarea id={id} name="message" aria-describedby={hintId} rows={2} maxLength={500} />}
              </Field>
              <SelectField label={text.life} name="life" defaultValue="7" options={text.lives} />
            </Form>
          )}
        </Loaded>
      ) : (
        <Results sent={made.results ?? [{ email: made.email, link: made.link }]} onClose={onClose} />
      )}
    </Dialog>
  );
};
