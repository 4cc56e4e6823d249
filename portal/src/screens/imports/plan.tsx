// The dialog that makes the plan of an import from a file.
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, mooring, queryClient } from "../../api/client.ts";
import { Dialog, Field, Form, SelectField } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { text } from "./text.ts";

const MEGABYTE = 1_048_576;
const PART_BYTES = 2 * MEGABYTE;

const isPacked = (file: File): boolean => file.name.endsWith(".gz");
const mostOf = (file: File): number => (isPacked(file) ? 100 : 1);

const base64 = async (part: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",")[1] ?? "");
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(part);
  });

interface Wanted {
  readonly conflict: "overwrite" | "skip" | "fail";
  readonly mode: "merge" | "replace";
  readonly sendInvites: boolean;
}
/** Begins an import. A packed file follows part by part; what it plans shows on the screen of the import. */
const begin = async (file: File, wanted: Wanted, tell: (percent: number) => void): Promise<string> => {
  if (!isPacked(file)) return (await mooring.imports.create.mutate({ ...wanted, document: await file.text() })).importId;
  const { importId } = await mooring.imports.create.mutate(wanted);
  for (let from = 0; from < file.size; from += PART_BYTES) {
    const part = file.slice(from, from + PART_BYTES);
    await mooring.imports.upload.mutate({ importId, contentRange: `bytes ${from}-${from + part.size - 1}/${file.size}`, part: await base64(part) });
    tell(Math.floor(((from + part.size) / file.size) * 100));
  }
  return importId;
};

export const PlanImport = ({ onClose }: { readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const [file, setFile] = useState<File | null>(null);
  const [sent, setSent] = useState(0);
  const plan = useMutation({
    mutationFn: ({ file: chosen, wanted }: { readonly file: File; readonly wanted: Wanted }) => begin(chosen, wanted, setSent),
    onSuccess: async (importId) => {
      await queryClient.invalidateQueries(api.imports.pathFilter());
      await navigate({ to: "/imports/$importId", params: { importId } });
    },
  });
  const isTooLarge = file !== null && file.size > mostOf(file) * MEGABYTE;
  const send = (fields: FormData): void => {
    const conflict = String(fields.get("conflict")) as Wanted["conflict"]; // as: the options say so
    if (file !== null) plan.mutate({ file, wanted: { conflict, mode: fields.has("replace") ? "replace" : "merge", sendInvites: fields.has("invite") } });
  };
  return (
    <Dialog title={text.plan} open onClose={onClose}>
      <Form submit={text.planIt} busy={plan.isPending} error={plan.error} disabled={file === null || isTooLarge} onSubmit={send} onCancel={onClose}>
        <Field label={text.file} hint={text.fileHint} fault={isTooLarge ? text.tooLarge(mostOf(file)) : undefined}>
          {(id, described) => (
            <input
              id={id}
              aria-describedby={described}
              type="file"
              accept=".yaml,.yml,.ndjson,.json,.txt,.gz"
              onChange={({ target }) => setFile(target.files?.[0] ?? null)}
            />
          )}
        </Field>
        <SelectField label={text.conflict} name="conflict" options={text.conflicts} />
        <Check name="invite" label={text.invite} />
        <Check name="replace" label={text.replace} />
        {plan.isPending && sent > 0 ? <p role="status">{text.sent(sent)}</p> : null}
      </Form>
    </Dialog>
  );
};
