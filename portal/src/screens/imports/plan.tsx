// The dialog that makes the plan of an import from a file.
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { Dialog, Field, Form, SelectField } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { text } from "./text.ts";

const MAX_BYTES = 1_048_576;

export const PlanImport = ({ onClose }: { readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const [file, setFile] = useState<File | null>(null);
  const plan = useMutation(
    api.imports.create.mutationOptions({
      onSuccess: async ({ importId }) => {
        await queryClient.invalidateQueries(api.imports.pathFilter());
        await navigate({ to: "/imports/$importId", params: { importId } });
      },
    }),
  );
  const isTooLarge = file !== null && file.size > MAX_BYTES;
  const send = async (fields: FormData): Promise<void> => {
    const document = (await file?.text()) ?? "";
    const conflict = String(fields.get("conflict")) as "overwrite"; // as: the options say so
    plan.mutate({ document, conflict, sendInvites: fields.has("invite") });
  };
  return (
    <Dialog title={text.plan} open onClose={onClose}>
      <Form
        submit={text.planIt}
        busy={plan.isPending}
        error={plan.error}
        disabled={file === null || isTooLarge}
        onSubmit={(fields) => void send(fields)}
        onCancel={onClose}
      >
        <Field label={text.file} hint={text.fileHint} fault={isTooLarge ? text.tooLarge : undefined}>
          {(id, described) => (
            <input
              id={id}
              aria-describedby={described}
              type="file"
              accept=".yaml,.yml,.ndjson,.json,.txt"
              onChange={({ target }) => setFile(target.files?.[0] ?? null)}
            />
          )}
        </Field>
        <SelectField label={text.conflict} name="conflict" options={text.conflicts} />
        <Check name="invite" label={text.invite} />
      </Form>
    </Dialog>
  );
};
