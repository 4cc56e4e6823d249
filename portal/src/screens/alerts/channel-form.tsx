// The forms of a channel. What it is reached by is never shown again, so a change replaces it or leaves it.
import type { AlertChannel } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { Confirm, Dialog, Field, Form, TextField } from "../../ui/dialog.tsx";
import { EditDialog } from "../../ui/edition.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { wordsOf } from "../../ui/fields/trim-input.ts";
import { SecretOnce } from "../../ui/secret-once.tsx";
import { text } from "./text.ts";

type Type = AlertChannel["type"];
const refresh = () => queryClient.invalidateQueries(api.alerts.pathFilter());

const configOf = (type: Type, fields: FormData) => {
  const token = String(fields.get("token") ?? "").trim();
  if (type === "email") return { to: wordsOf(String(fields.get("to"))) };
  return { url: String(fields.get("url")).trim(), ...(token === "" ? {} : { token }) };
};
const wishesOf = (fields: FormData) => ({
  name: String(fields.get("name")),
  isDefault: fields.has("isDefault"),
  sendResolved: fields.has("sendResolved"),
});

const Reached = ({ type, stored }: { readonly type: Type; readonly stored?: AlertChannel }) => {
  if (type === "email") {
    return (
      <Field label={text.recipients} hint={text.recipientsHint}>
        {(id, hintId) => (
          <textarea id={id} aria-describedby={hintId} name="to" required rows={2} maxLength={2_600} defaultValue={stored?.address.split(/,\s*/).join("\n")} />
        )}
      </Field>
    );
  }
  return (
    <>
      <TextField
        label={text.url}
        name="url"
        type="url"
        hint={stored === undefined ? text.urlHint : text.urlKept}
        required={stored === undefined}
        maxLength={2_048}
        placeholder="https://"
      />
      {type === "ntfy" ? <TextField label={text.token} name="token" type="password" hint={text.tokenHint} maxLength={500} /> : null}
    </>
  );
};

const Choices = ({ type, stored }: { readonly type: Type; readonly stored?: AlertChannel }) => (
  <div>
    <Check name="isDefault" label={text.isDefault} defaultChecked={stored?.isDefault ?? true} />
    <Check name="sendResolved" label={text.sendResolved} defaultChecked={stored?.sendResolved ?? type !== "email"} />
  </div>
);

export const CreateChannel = ({ onClose }: { readonly onClose: () => void }) => {
  const [type, setType] = useState<Type>("email");
  const create = useMutation(
    api.alerts.createChannel.mutationOptions({
      onSuccess: async ({ secret }) => {
        await refresh();
        if (secret === undefined) onClose();
      },
      // A secret is not kept longer than somebody looks at it.
      gcTime: 0,
    }),
  );
  const { data } = create;
  return (
    <Dialog title={text.createChannel} open onClose={onClose}>
      {data?.secret === undefined ? (
        <Form
          submit={text.createChannel}
          busy={create.isPending}
          error={create.error}
          onCancel={onClose}
          onSubmit={(fields) => create.mutate({ type, ...wishesOf(fields), config: configOf(type, fields) })}
        >
          <Field label={text.type}>
            {(id) => (
              <select id={id} value={type} onChange={({ target }) => setType(target.value as Type)}>
                {Object.entries(text.types).map(([value, word]) => (
                  <option key={value} value={value}>
                    {word}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <TextField label={text.name} name="name" required maxLength={100} />
          <Reached key={type} type={type} />
          <Choices key={`${type} choices`} type={type} />
        </Form>
      ) : (
        <SecretOnce label={text.secret} secret={data.secret} onDone={onClose} />
      )}
    </Dialog>
  );
};

const Remove = ({ of: { channelId, name }, onBack, onClose }: { readonly of: AlertChannel; readonly onBack: () => void; readonly onClose: () => void }) => {
  const remove = useMutation(
    api.alerts.removeChannel.mutationOptions({
      onSuccess: async () => {
        onClose();
        await refresh();
      },
    }),
  );
  return (
    <Confirm title={text.removeTitle(name)} open onClose={onBack} submit={text.remove} action={remove} onConfirm={() => remove.mutate({ channelId })}>
      {text.removeChannel}
    </Confirm>
  );
};

interface ChangeProps {
  readonly of: AlertChannel;
  readonly onClose: () => void;
  readonly onRemove: () => void;
}
const Change = ({ of: channel, onClose, onRemove }: ChangeProps) => {
  const { channelId, type, version } = channel;
  const update = useMutation(
    api.alerts.updateChannel.mutationOptions({
      onSuccess: async () => {
        await refresh();
        onClose();
      },
    }),
  );
  const send = (fields: FormData): void => {
    const isKept = type !== "email" && String(fields.get("url")).trim() === "";
    const config = isKept ? {} : { config: configOf(type, fields) };
    update.mutate({ channelId, version, enabled: fields.has("enabled"), ...wishesOf(fields), ...config });
  };
  return (
    <Form
      submit={text.save}
      busy={update.isPending}
      error={update.error}
      onSubmit={send}
      onCancel={onClose}
      beside={
        <button type="button" data-kind="danger" onClick={onRemove}>
          {text.remove}
        </button>
      }
    >
      <TextField label={text.name} name="name" required maxLength={100} defaultValue={channel.name} />
      <Reached type={type} stored={channel} />
      <div>
        <Choices type={type} stored={channel} />
        <Check name="enabled" label={text.enabled} defaultChecked={channel.enabled} />
      </div>
    </Form>
  );
};

export const EditChannel = ({ stored, onClose }: { readonly stored: AlertChannel; readonly onClose: () => void }) => (
  <EditDialog
    stored={stored}
    form={(channel, onRemove) => <Change of={channel} onClose={onClose} onRemove={onRemove} />}
    remove={(onBack) => <Remove of={stored} onBack={onBack} onClose={onClose} />}
  />
);
