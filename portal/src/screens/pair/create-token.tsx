// Creates an enrollment token, and shows the command with it, once.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PickTags } from "../../parts/selector-field.tsx";
import { Dialog, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { InstallLine } from "./install-line.tsx";
import css from "./pair.module.css";
import { text } from "./text.ts";

const Command = ({ command, onClose }: { readonly command: string; readonly onClose: () => void }) => (
  <div className="stack">
    <p>
      <strong>{text.once}</strong>
    </p>
    <p>{text.run}</p>
    <InstallLine command={command} />
    <p>{text.thenAgent}</p>
    <div className="row">
      <button type="button" data-kind="primary" onClick={onClose}>
        {text.copied}
      </button>
    </div>
  </div>
);

export const CreateToken = ({ onClose }: { readonly onClose: () => void }) => {
  const [tags, setTags] = useState<string[]>([]);
  const create = useMutation(
    api.pairing.createToken.mutationOptions({ onSuccess: () => void queryClient.invalidateQueries(api.pairing.listTokens.pathFilter()) }),
  );
  const send = (fields: FormData): void => {
    const uses = String(fields.get("maxUses"));
    create.mutate({
      name: String(fields.get("name")).trim(),
      expiresInSeconds: Number(fields.get("life")),
      maxUses: uses === "" ? null : Number(uses),
      tags,
      allowRepair: fields.get("allowRepair") === "on",
    });
  };
  return (
    <Dialog title={text.createTitle} open onClose={onClose}>
      {create.data === undefined ? (
        <Form submit={text.create} busy={create.isPending} error={create.error} onSubmit={send} onCancel={onClose}>
          <TextField label={text.tokenName} name="name" required maxLength={100} />
          <SelectField label={text.life} name="life" defaultValue="86400" options={text.lives} />
          <TextField label={text.maxUses} name="maxUses" type="number" min={1} max={1_000} defaultValue={1} hint={text.maxUsesHint} />
          <PickTags hint={text.tags} picked={tags} onChange={setTags} />
          <label className={css["check"]}>
            <input type="checkbox" name="allowRepair" />
            <span>
              {text.allowRepair}
              <br />
              <span className="muted">{text.allowRepairHint}</span>
            </span>
          </label>
        </Form>
      ) : (
        <Command command={create.data.installCommand} onClose={onClose} />
      )}
    </Dialog>
  );
};
