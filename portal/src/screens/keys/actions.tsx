// What people do with an API key that exists: change, rotate and revoke it.
import type { ApiKeyWithCreator } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { Confirm, Dialog, Form, SelectField } from "../../ui/dialog.tsx";
import { KeyForm } from "./key-form.tsx";
import { NewKeySecret } from "./new-key-secret.tsx";
import { text } from "./text.ts";

interface Props {
  readonly of: ApiKeyWithCreator;
  readonly onClose: () => void;
}

const readAgain = (): Promise<void> => queryClient.invalidateQueries(api.apiKeys.pathFilter());

const ChangeKey = ({ of, onClose }: Props) => {
  const update = useMutation(
    api.apiKeys.update.mutationOptions({
      onSuccess: async () => {
        await readAgain();
        onClose();
      },
    }),
  );
  return (
    <Dialog title={text.changed} open onClose={onClose}>
      <KeyForm
        of={of}
        submit={text.save}
        action={update}
        onCancel={onClose}
        onSubmit={({ name, scopes, selector, ipAllowlist }) => update.mutate({ keyId: of.keyId, version: of.version, name, scopes, selector, ipAllowlist })}
      />
    </Dialog>
  );
};

const RotateKey = ({ of, onClose }: Props) => {
  const rotate = useMutation(api.apiKeys.rotate.mutationOptions({ onSuccess: readAgain, gcTime: 0 }));
  return (
    <Dialog title={text.rotateTitle} open onClose={onClose}>
      {rotate.data === undefined ? (
        <Form
          submit={text.rotate}
          busy={rotate.isPending}
          error={rotate.error}
          onCancel={onClose}
          onSubmit={(fields) => rotate.mutate({ keyId: of.keyId, graceSeconds: Number(fields.get("grace")) })}
        >
          <p>{text.rotateNote}</p>
          <SelectField label={text.grace} name="grace" defaultValue="86400" options={text.graces} />
        </Form>
      ) : (
        <NewKeySecret made={rotate.data} graceSeconds={rotate.variables.graceSeconds ?? 0} onDone={onClose} />
      )}
    </Dialog>
  );
};

const RevokeKey = ({ of, onClose }: Props) => {
  const revoke = useMutation(
    api.apiKeys.revoke.mutationOptions({
      onSuccess: async () => {
        await readAgain();
        onClose();
      },
    }),
  );
  return (
    <Confirm title={text.revokeTitle(of.name)} open onClose={onClose} submit={text.revoke} action={revoke} onConfirm={() => revoke.mutate({ keyId: of.keyId })}>
      {text.revokeNote}
    </Confirm>
  );
};

const DIALOGS = { change: ChangeKey, rotate: RotateKey, revoke: RevokeKey } as const;

export const KeyActions = ({ of }: { readonly of: ApiKeyWithCreator }) => {
  const [opened, setOpened] = useState<keyof typeof DIALOGS | null>(null);
  const Opened = opened === null ? null : DIALOGS[opened];
  return (
    <div className="row">
      <button type="button" onClick={() => setOpened("change")}>
        {text.change}
      </button>
      <button type="button" onClick={() => setOpened("rotate")}>
        {text.rotate}
      </button>
      <button type="button" data-kind="danger" onClick={() => setOpened("revoke")}>
        {text.revoke}
      </button>
      {Opened === null ? null : <Opened of={of} onClose={() => setOpened(null)} />}
    </div>
  );
};
