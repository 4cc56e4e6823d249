// Creates an enrollment token for many machines, and shows it once, in each form that people paste.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { Dialog, Form, TextField } from "../../ui/dialog.tsx";
import { Formats } from "./formats.tsx";
import { text } from "./text.ts";
import { TokenFields } from "./token-fields.tsx";
import { type TokenTerms, termsOf } from "./token-terms.ts";

const MANY: TokenTerms = { maxUses: 10, expiresInSeconds: 86_400, tags: [], approval: "none", allowRepair: false };

export const CreateToken = ({ onClose }: { readonly onClose: () => void }) => {
  const [tags, setTags] = useState(MANY.tags);
  const create = useMutation(
    api.pairing.createToken.mutationOptions({ onSuccess: () => void queryClient.invalidateQueries(api.pairing.listTokens.pathFilter()) }),
  );
  const send = (fields: FormData): void => create.mutate({ ...termsOf(fields, tags), name: String(fields.get("name")).trim() });
  return (
    <Dialog title={text.createTitle} open onClose={onClose}>
      {create.data === undefined ? (
        <Form submit={text.create} busy={create.isPending} error={create.error} onSubmit={send} onCancel={onClose}>
          <TextField label={text.tokenName} name="name" required maxLength={100} />
          <TokenFields of={MANY} tags={tags} onTags={setTags} />
        </Form>
      ) : (
        <div className="stack">
          <p>
            <strong>{text.once}</strong>
          </p>
          <Formats command={create.data.installCommand} />
          <div className="row">
            <button type="button" data-kind="primary" onClick={onClose}>
              {text.haveCopied}
            </button>
          </div>
        </div>
      )}
    </Dialog>
  );
};
