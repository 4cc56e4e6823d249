// The rates that devices with a tag have instead of the others: a list, and the dialog that adds to it.
import type { CostRates } from "@mooring/client";
import { useState } from "react";
import { Dialog, Form, TextField } from "../../ui/dialog.tsx";
import { Panel } from "../../ui/parts.tsx";
import { NO_RATES, RateFields, readRates } from "./rate-fields.tsx";
import { text } from "./text.ts";

type OwnRates = CostRates["byTag"];

interface TagRatesProps {
  readonly rates: OwnRates;
  readonly minorDigits: number;
  readonly onChange: (rates: OwnRates) => void;
}
export const TagRates = ({ rates, minorDigits, onChange }: TagRatesProps) => {
  const [open, setOpen] = useState<OwnRates[number] | null>(null);
  const close = (): void => setOpen(null);
  const others = rates.filter(({ tag }) => tag !== open?.tag);
  const keep = (fields: FormData): void => {
    const changed = { tag: String(fields.get("tag") ?? open?.tag).trim(), rates: readRates(fields, minorDigits) };
    const isNew = rates.every(({ tag }) => tag !== open?.tag);
    onChange(isNew ? [...rates.filter(({ tag }) => tag !== changed.tag), changed] : rates.map((each) => (each.tag === open?.tag ? changed : each)));
    close();
  };
  return (
    <Panel title={text.tagRates}>
      <p className="muted">{text.tagHint}</p>
      {rates.map((each) => (
        <div key={each.tag}>
          <button type="button" data-kind="plain" onClick={() => setOpen(each)}>
            {each.tag}
          </button>
        </div>
      ))}
      <div>
        <button type="button" onClick={() => setOpen({ tag: "", rates: NO_RATES })}>
          {text.addTag}
        </button>
      </div>
      <Dialog title={text.tagTitle} open={open !== null} onClose={close}>
        <Form
          submit={text.apply}
          busy={false}
          error={null}
          onSubmit={keep}
          onCancel={close}
          beside={
            open === null || open.tag === "" ? undefined : (
              <button
                type="button"
                data-kind="danger"
                onClick={() => {
                  onChange(others);
                  close();
                }}
              >
                {text.removeTag}
              </button>
            )
          }
        >
          <TextField label={text.tag} name="tag" required maxLength={64} defaultValue={open?.tag ?? ""} placeholder="site:lisbon" />
          <RateFields rates={open?.rates ?? NO_RATES} minorDigits={minorDigits} />
        </Form>
      </Dialog>
    </Panel>
  );
};
