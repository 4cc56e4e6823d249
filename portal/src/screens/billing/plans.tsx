// The plans to choose from, and what a change would cost before somebody makes it.
import type { BillingPlan, PlanPreview, TenantBilling } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { Facts, Loaded, Panel } from "../../ui/parts.tsx";
import css from "./billing.module.css";
import { readBillingAgain, returnUrl } from "./subscription.tsx";
import { money, text } from "./text.ts";

type Interval = PlanPreview["interval"];
type PaidPlan = Exclude<BillingPlan["tier"], "free">;

const Cost = ({ of: { currency, amountDue, credit, nextAmount, interval, over, blocked } }: { readonly of: PlanPreview }) => (
  <>
    <Facts
      of={{
        [text.now]: <strong>{money(amountDue, currency)}</strong>,
        [text.credit]: credit === 0 ? null : money(credit, currency),
        [text.next]: `${money(nextAmount, currency)}, ${text.intervals[interval]}`,
      }}
    />
    {over.map(({ resource, used, limit }) => (
      <p key={resource}>{text.over(resource, used, limit)}</p>
    ))}
    {over.length === 0 ? null : <p className={css["notice"]}>{blocked ? text.blocked : text.overNote}</p>}
  </>
);

interface ChoosePlanProps {
  readonly name: string;
  readonly order: { readonly plan: PaidPlan; readonly interval: Interval };
  readonly onClose: () => void;
}

const ChoosePlan = ({ name, order, onClose }: ChoosePlanProps) => {
  const preview = useQuery({ ...api.billing.preview.queryOptions(order), refetchInterval: false });
  const checkout = useMutation(
    api.billing.checkout.mutationOptions({
      onSuccess: async ({ checkoutUrl }, asked) => {
        if (checkoutUrl !== asked.successUrl) return location.assign(checkoutUrl);
        await readBillingAgain();
        onClose();
      },
    }),
  );
  return (
    <Dialog title={text.chooseTitle(name)} open onClose={onClose}>
      <Form
        submit={text.confirm(name)}
        busy={checkout.isPending}
        error={checkout.error}
        disabled={preview.data === undefined || preview.data.blocked}
        onCancel={onClose}
        onSubmit={() => checkout.mutate({ ...order, successUrl: returnUrl(), cancelUrl: returnUrl() })}
      >
        <Loaded read={preview}>{(cost) => <Cost of={cost} />}</Loaded>
      </Form>
    </Dialog>
  );
};

interface PlanCardProps {
  readonly of: BillingPlan;
  readonly interval: Interval;
  readonly isCurrent: boolean;
  /** Null where it cannot be chosen. */
  readonly onChoose: (() => void) | null;
}

const PlanCard = ({ of: { name, monthlyPrice, annualPrice, features }, interval, isCurrent, onChoose }: PlanCardProps) => {
  const price = interval === "annual" ? annualPrice : monthlyPrice;
  return (
    <li className={css["plan"]} data-current={isCurrent || undefined}>
      <h3>
        {name} {isCurrent ? <span className="muted">· {text.current}</span> : null}
      </h3>
      <div>
        <span className={css["price"]}>{price === 0 ? text.free : money(price, "usd")}</span>{" "}
        {price === 0 ? "" : <span className="muted">{text.perMonth}</span>}
      </div>
      <ul>
        {features.map((feature) => (
          <li key={feature}>{feature}</li>
        ))}
      </ul>
      {onChoose === null ? null : (
        <button type="button" onClick={onChoose} aria-label={`${text.choose} ${name}`}>
          {text.choose}
        </button>
      )}
    </li>
  );
};

const INTERVALS: readonly Interval[] = ["monthly", "annual"];

export const Plans = ({ billing }: { readonly billing: TenantBilling["billing"] }) => {
  const mayPay = useMay()("billing:write");
  const [interval, setInterval] = useState<Interval>(billing.interval ?? "monthly");
  const [chosen, setChosen] = useState<PaidPlan | null>(null);
  const plans = useQuery({ ...api.billing.plans.queryOptions({}), staleTime: 600_000, refetchInterval: false });
  const isBought = (tier: BillingPlan["tier"]): boolean =>
    tier === billing.plan && billing.status === "active" && billing.interval === interval && billing.cancelAtPeriodEnd !== true;
  return (
    <Panel
      title={text.plans}
      beside={
        <fieldset className={css["intervals"]}>
          <legend className="out-of-sight">Payment</legend>
          {INTERVALS.map((each) => (
            <label key={each}>
              <input type="radio" name="interval" checked={interval === each} onChange={() => setInterval(each)} /> {text.intervals[each]}
            </label>
          ))}
        </fieldset>
      }
    >
      {mayPay ? null : <p className="muted">{text.forOwners}</p>}
      <Loaded read={plans} rows={6}>
        {({ plans: all }) => (
          <ul className={css["plans"]}>
            {all.map((plan) => {
              const { tier } = plan;
              return (
                <PlanCard
                  key={tier}
                  of={plan}
                  interval={interval}
                  isCurrent={tier === billing.plan}
                  onChoose={tier === "free" || !mayPay || isBought(tier) ? null : () => setChosen(tier)}
                />
              );
            })}
          </ul>
        )}
      </Loaded>
      {chosen === null ? null : (
        <ChoosePlan
          name={plans.data?.plans.find(({ tier }) => tier === chosen)?.name ?? chosen}
          order={{ plan: chosen, interval }}
          onClose={() => setChosen(null)}
        />
      )}
    </Panel>
  );
};
