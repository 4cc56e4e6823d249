// How the tenant stands: its plan, what is due when, and what needs somebody: a failed payment, a suspension, an end.
import type { TenantBilling } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useMay, useMe } from "../../api/session.ts";
import { Facts, Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { dayOf } from "../../ui/time.tsx";
import css from "./billing.module.css";
import { CancelSubscription, CustomerPortal, ResumeSubscription } from "./subscription.tsx";
import { money, text } from "./text.ts";

type Billing = TenantBilling["billing"];

const noticeOf = ({ status, cancellationEffectiveDate, trialEndsAt }: Billing, isSuspended: boolean): readonly [words: string, isBad: boolean] | null => {
  if (status === "unpaid") return [text.unpaid, true];
  if (isSuspended) return [text.suspended, true];
  if (status === "past_due") return [text.pastDue, true];
  if (cancellationEffectiveDate !== undefined) return [text.ending(dayOf(cancellationEffectiveDate)), false];
  if (status === "trialing" && trialEndsAt !== undefined) return [text.trial(dayOf(trialEndsAt)), false];
  return null;
};
const TONES: Readonly<Partial<Record<Billing["status"], string>>> = {
  past_due: "failed",
  unpaid: "failed",
  trialing: "active",
  none: "none",
  incomplete: "pending",
};

const useIsSuspended = (): boolean => {
  const { tenantId } = useMe();
  const enabled = useMay()("tenant:read") && tenantId !== null;
  return useQuery({ ...api.tenants.get.queryOptions({ tenantId: tenantId ?? "" }), enabled }).data?.status === "suspended";
};

export const Suspended = () =>
  useIsSuspended() ? (
    <p role="status" className={css["notice"]} data-bad>
      {text.suspended}
    </p>
  ) : null;

export const Standing = ({ of: { billing, planDetails } }: { readonly of: TenantBilling }) => {
  const mayPay = useMay()("billing:write");
  const [canceling, setCanceling] = useState(false);
  const isSuspended = useIsSuspended();
  const notice = noticeOf(billing, isSuspended);
  const { plan, status, interval, currentPeriodEnd, trialEndsAt, cancelAtPeriodEnd } = billing;
  const isPaid = interval !== undefined && status !== "canceled";
  const price = interval === "annual" ? planDetails?.annualPrice : planDetails?.monthlyPrice;
  return (
    <Panel title={text.plan} beside={<Status status={TONES[status] ?? status} word={text.statuses[status]} />}>
      {notice === null ? null : (
        <p role="status" className={css["notice"]} data-bad={notice[1] || undefined}>
          {notice[0]}
        </p>
      )}
      <Facts
        of={{
          Plan: <strong>{planDetails?.name ?? plan}</strong>,
          Price: isPaid && price !== undefined ? `${money(price, "usd")} ${text.perMonth}, ${text.intervals[interval]}` : null,
          Renewal: isPaid && currentPeriodEnd !== undefined && cancelAtPeriodEnd !== true ? dayOf(currentPeriodEnd) : null,
          "Trial until": status === "trialing" && trialEndsAt !== undefined ? dayOf(trialEndsAt) : null,
        }}
      />
      {mayPay && isPaid ? (
        <div className="row">
          <CustomerPortal />
          {cancelAtPeriodEnd === true ? (
            <ResumeSubscription />
          ) : (
            <button type="button" data-kind="danger" onClick={() => setCanceling(true)}>
              {text.cancel}
            </button>
          )}
        </div>
      ) : null}
      {canceling ? <CancelSubscription until={currentPeriodEnd} onClose={() => setCanceling(false)} /> : null}
    </Panel>
  );
};
