// The rates: those in effect, those to come, and the form that makes a version of them.
import type { CostRates } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Form, TextField } from "../../ui/dialog.tsx";
import { Empty, Facts, Loaded, Panel } from "../../ui/parts.tsx";
import { dayOf } from "../../ui/time.tsx";
import css from "./cost.module.css";
import { type Currency, type Rates as DeviceRates, fieldText, minorDigitsOf, minorOf, moneyText } from "./money.ts";
import { Example, NO_RATES, RateFields, readRates } from "./rate-fields.tsx";
import { TagRates } from "./tag-rates.tsx";
import { text } from "./text.ts";

type Set = Pick<CostRates, "currency" | "sharedMonthly" | "device" | "byTag">;
const FIRST: Set = { currency: "EUR", sharedMonthly: 0, device: NO_RATES, byTag: [] };

const currencyOf = (currency: string): Currency => ({ currency, minorDigits: minorDigitsOf(currency) });

const RatesForm = ({ stored, onDone }: { readonly stored: CostRates | null; readonly onDone: () => void }) => {
  const { currency: first, sharedMonthly, device, byTag } = stored ?? FIRST;
  const [code, setCode] = useState(first);
  const [draft, setDraft] = useState<DeviceRates>(device);
  const [tags, setTags] = useState(byTag);
  const currency = currencyOf(/^[A-Z]{3}$/.test(code) ? code : first);
  const { minorDigits } = currency;
  const save = useMutation(
    api.costs.setRates.mutationOptions({
      onSuccess: async () => {
        await queryClient.invalidateQueries(api.costs.pathFilter());
        onDone();
      },
    }),
  );
  const send = (fields: FormData): void => {
    const validFrom = String(fields.get("validFrom") ?? "");
    save.mutate({
      currency: String(fields.get("currency") ?? first)
        .trim()
        .toUpperCase(),
      sharedMonthly: minorOf(String(fields.get("sharedMonthly") ?? ""), minorDigits),
      device: readRates(fields, minorDigits),
      byTag: tags.map(({ tag, rates }) => ({ tag, rates })),
      ...(validFrom === "" ? {} : { validFrom }),
      ...(stored === null ? {} : { version: stored.version }),
    });
  };
  return (
    <div className={css["columns"]}>
      <Panel title={text.ratesFor}>
        <div
          onInput={({ currentTarget }) => {
            const form = currentTarget.querySelector("form");
            if (form !== null) setDraft(readRates(new FormData(form), minorDigits));
          }}
        >
          <Form submit={text.save} busy={save.isPending} error={save.error} onSubmit={send} onCancel={onDone}>
            {stored === null ? (
              <TextField
                label={text.currency}
                name="currency"
                hint={text.currencyHint}
                required
                maxLength={3}
                defaultValue={first}
                onChange={({ target }) => setCode(target.value.trim().toUpperCase())}
              />
            ) : null}
            <RateFields rates={device} minorDigits={minorDigits} />
            <div className={css["pair"]}>
              <TextField label={text.sharedMonthly} name="sharedMonthly" hint={text.sharedHint} defaultValue={fieldText(sharedMonthly, minorDigits)} />
              <TextField label={text.validFrom} name="validFrom" type="date" hint={text.validFromHint} />
            </div>
          </Form>
        </div>
      </Panel>
      <div className={css["stack"]}>
        <Panel title={text.aMonth}>
          <Example rates={draft} currency={currency} />
        </Panel>
        <TagRates rates={tags} minorDigits={minorDigits} onChange={setTags} />
      </div>
    </div>
  );
};

const RatesInEffect = ({ rates, next }: { readonly rates: CostRates; readonly next: CostRates | undefined }) => {
  const currency = currencyOf(rates.currency);
  return (
    <div className={css["columns"]}>
      <Panel title={text.ratesFor}>
        <Facts
          of={{
            [text.since]: dayOf(rates.validFrom),
            [text.sharedMonthly]: moneyText(rates.sharedMonthly, currency),
            [text.purchase]: moneyText(rates.device.purchase, currency),
            [text.lifetime]: rates.device.lifetimeMonths,
            [text.fixed]: moneyText(rates.device.fixedMonthly, currency),
            [text.wattsIdle]: rates.device.wattsIdle,
            [text.wattsMax]: rates.device.wattsMax,
            [text.kwh]: `${rates.device.kwhPrice} ${rates.currency}`,
            [text.tagRates]: rates.byTag.length === 0 ? null : rates.byTag.map(({ tag }) => tag).join(", "),
            [text.from]: next === undefined ? null : `${dayOf(next.validFrom)}. ${text.upcoming}`,
          }}
        />
      </Panel>
      <Panel title={text.aMonth}>
        <Example rates={rates.device} currency={currency} />
      </Panel>
    </div>
  );
};

export const Rates = () => {
  const may = useMay()("cost:write");
  const [isEditing, setEditing] = useState(false);
  const read = useQuery(api.costs.getRates.queryOptions({}));
  return (
    <Loaded read={read} rows={6}>
      {({ current, versions }) => {
        const newest = versions.toSorted((a, b) => b.version - a.version)[0] ?? null;
        const shown = current ?? newest;
        if (isEditing) return <RatesForm key={newest?.version ?? 0} stored={newest} onDone={() => setEditing(false)} />;
        const button = may ? (
          <button type="button" data-kind="primary" onClick={() => setEditing(true)}>
            {shown === null ? text.enterRates : text.changeRates}
          </button>
        ) : undefined;
        if (shown === null) return <Empty action={button}>{may ? text.noRates : text.noRatesForMe}</Empty>;
        return (
          <>
            {button === undefined ? null : <div>{button}</div>}
            <RatesInEffect rates={shown} next={versions.findLast(({ validFrom }) => validFrom > shown.validFrom)} />
          </>
        );
      }}
    </Loaded>
  );
};
