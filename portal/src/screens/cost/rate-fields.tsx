// The fields of the rates of a device, and one device worked out with what they hold.
import { TextField } from "../../ui/dialog.tsx";
import { Facts } from "../../ui/parts.tsx";
import css from "./cost.module.css";
import { type Currency, exampleOf, fieldText, minorOf, moneyText, priceOf, type Rates } from "./money.ts";
import { text } from "./text.ts";

export const NO_RATES: Rates = {
  purchase: 0,
  lifetimeMonths: 60,
  fixedMonthly: 0,
  wattsIdle: 0,
  wattsMax: 0,
  kwhPrice: "0",
  cpuCoreHour: "0",
  memoryGBHour: "0",
  storageGBMonth: "0",
};

export const readRates = (fields: FormData, minorDigits: number): Rates => {
  const typed = (name: string): string => String(fields.get(name) ?? "");
  return {
    purchase: minorOf(typed("purchase"), minorDigits),
    lifetimeMonths: Number(typed("lifetimeMonths") || NO_RATES.lifetimeMonths),
    fixedMonthly: minorOf(typed("fixedMonthly"), minorDigits),
    wattsIdle: Number(typed("wattsIdle") || 0),
    wattsMax: Number(typed("wattsMax") || 0),
    kwhPrice: priceOf(typed("kwhPrice")),
    cpuCoreHour: priceOf(typed("cpuCoreHour")),
    memoryGBHour: priceOf(typed("memoryGBHour")),
    storageGBMonth: priceOf(typed("storageGBMonth")),
  };
};

interface RateFieldsProps {
  readonly rates: Rates;
  readonly minorDigits: number;
}
export const RateFields = ({ rates, minorDigits }: RateFieldsProps) => (
  <>
    <div className={css["pair"]}>
      <TextField label={text.purchase} name="purchase" defaultValue={fieldText(rates.purchase, minorDigits)} />
      <TextField label={text.lifetime} name="lifetimeMonths" type="number" min={1} max={240} defaultValue={rates.lifetimeMonths} />
      <TextField label={text.fixed} name="fixedMonthly" hint={text.fixedHint} defaultValue={fieldText(rates.fixedMonthly, minorDigits)} />
    </div>
    <div className={css["pair"]}>
      <TextField label={text.wattsIdle} name="wattsIdle" defaultValue={rates.wattsIdle} />
      <TextField label={text.wattsMax} name="wattsMax" defaultValue={rates.wattsMax} />
      <TextField label={text.kwh} name="kwhPrice" defaultValue={rates.kwhPrice} />
    </div>
    <details>
      <summary>{text.more}</summary>
      <div className={css["pair"]}>
        <TextField label={text.core} name="cpuCoreHour" defaultValue={rates.cpuCoreHour} />
        <TextField label={text.memory} name="memoryGBHour" defaultValue={rates.memoryGBHour} />
        <TextField label={text.storage} name="storageGBMonth" defaultValue={rates.storageGBMonth} />
      </div>
    </details>
  </>
);

export const Example = ({ rates, currency }: { readonly rates: Rates; readonly currency: Currency }) => {
  const { minorDigits } = currency;
  const { watts, kwh, purchase, fixed, energy, parts, total } = exampleOf(rates, minorDigits);
  const shown = (amount: number): string => (Number.isFinite(amount) ? moneyText(amount * 10 ** minorDigits, currency) : "");
  return (
    <>
      <p className="muted">{text.example}</p>
      <Facts
        of={{
          [text.purchase]: shown(purchase),
          [text.fixed]: fixed === 0 ? null : shown(fixed),
          [text.energy]: energy === 0 ? null : `${shown(energy)} (${text.exampleEnergy(watts, kwh)})`,
          [text.exampleParts]: parts === 0 ? null : shown(parts),
          [text.aMonth]: <strong>{shown(total)}</strong>,
        }}
      />
    </>
  );
};
