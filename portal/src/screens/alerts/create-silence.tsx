// Silences alerts for a time.
import type { AlertSilence } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { Dialog, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import css from "./alerts.module.css";
import { text } from "./text.ts";

const MAX_MATCHERS = 10;
type MatcherName = AlertSilence["matchers"][number]["name"];

/** Rows of the form: only their number is known here, what they hold is read when the form is sent. */
const Matchers = () => {
  const [rows, setRows] = useState<readonly number[]>([0]);
  return (
    <fieldset className={css["matchers"]}>
      <legend>{text.matchers}</legend>
      <p className="muted">{text.matchersHint}</p>
      {rows.map((row, index) => (
        <div key={row} className={css["matcher"]}>
          <SelectField label={text.by} name="matcher" options={Object.entries(text.matcherNames)} />
          <TextField label={text.value} name="value" required maxLength={200} />
          {rows.length === 1 ? null : (
            <button type="button" aria-label={text.takeOut(index + 1)} onClick={() => setRows(rows.filter((each) => each !== row))}>
              ×
            </button>
          )}
          <Check name="pattern" value={String(index)} label={text.isPattern} />
        </div>
      ))}
      {rows.length >= MAX_MATCHERS ? null : (
        <div>
          <button type="button" onClick={() => setRows([...rows, Math.max(...rows) + 1])}>
            {text.addMatcher}
          </button>
        </div>
      )}
    </fieldset>
  );
};

export const CreateSilence = ({ onClose }: { readonly onClose: () => void }) => {
  const create = useMutation(
    api.alerts.createSilence.mutationOptions({
      onSuccess: async () => {
        await queryClient.invalidateQueries(api.alerts.pathFilter());
        onClose();
      },
    }),
  );
  const send = (fields: FormData): void => {
    const names = fields.getAll("matcher").map((name) => String(name) as MatcherName); // as: the options say so
    const values = fields.getAll("value").map(String);
    const patterns = fields.getAll("pattern").map(Number);
    create.mutate({
      matchers: names.map((name, index) => ({ name, value: values[index] ?? "", isRegex: patterns.includes(index) })),
      endsAt: new Date(gatewayNow() + 1_000 * Number(fields.get("seconds"))).toISOString(),
      comment: String(fields.get("comment")),
    });
  };
  return (
    <Dialog title={text.createSilence} open onClose={onClose}>
      <Form submit={text.createSilence} busy={create.isPending} error={create.error} onSubmit={send} onCancel={onClose}>
        <Matchers />
        <SelectField label={text.length} name="seconds" defaultValue="14400" options={text.lengths} />
        <TextField label={text.reason} name="comment" required maxLength={500} />
      </Form>
    </Dialog>
  );
};
