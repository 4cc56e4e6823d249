// What a new export holds, and in which form.
import type { DataExport } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { Dialog, Form, SelectField } from "../../ui/dialog.tsx";
import { Check, Checks } from "../../ui/fields/checks.tsx";
import { SCOPES, text } from "./text.ts";

export const CreateExport = ({ onClose }: { readonly onClose: () => void }) => {
  const [scopes, setScopes] = useState<readonly DataExport["scopes"][number][]>([]);
  const [format, setFormat] = useState("ndjson");
  const create = useMutation(
    api.dataExports.create.mutationOptions({
      onSuccess: async () => {
        onClose();
        await queryClient.invalidateQueries(api.dataExports.pathFilter());
      },
    }),
  );
  const isCsv = format === "csv";
  const send = (): void => create.mutate({ format: isCsv ? "csv" : "ndjson", ...(scopes.length === 0 ? {} : { scopes: [...scopes] }) });
  return (
    <Dialog title={text.create} open onClose={onClose}>
      <Form submit={text.start} busy={create.isPending} error={create.error} disabled={isCsv && scopes.length !== 1} onSubmit={send} onCancel={onClose}>
        <SelectField label={text.format} name="format" options={text.formats} onChange={({ target }) => setFormat(target.value)} />
        <Checks label={text.choose} hint={isCsv ? text.oneForCsv : text.chooseHint}>
          {SCOPES.map((scope) => (
            <Check
              key={scope}
              name={scope}
              label={text.scopes[scope]}
              checked={scopes.includes(scope)}
              onChange={({ target }) => setScopes(target.checked ? [...scopes, scope] : scopes.filter((each) => each !== scope))}
            />
          ))}
        </Checks>
      </Form>
    </Dialog>
  );
};
