// Receives the provider's events: each has its effect once, however often and in whatever order they come.
import { contract } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { TenantStanding } from "../tenants/index.ts";
import type { ProviderEvent, ReadProviderEvent } from "./provider.ts";
import { providerOrderOf } from "./rules.ts";
import { writeInvoice } from "./store/invoices.ts";
import { insertProviderEvent } from "./store/provider-events.ts";
import type { Subscriptions } from "./subscriptions.ts";

export interface ReceiveDeps {
  readonly db: Db;
  readonly emit: Emit;
  readonly tenants: TenantStanding;
  readonly subscriptions: Subscriptions;
  readonly read: ReadProviderEvent;
}

export const createReceiveEvent = ({ db, emit, tenants, subscriptions, read }: ReceiveDeps) => {
  const apply = async (tx: Tx, scope: SystemScope, { eventId, at, rank, change }: ProviderEvent): Promise<void> => {
    if (change === null) return;
    const order = { text: providerOrderOf(at, rank, eventId), at };
    if (change.kind === "subscription") return subscriptions.write(tx, scope, change.subscription, order);
    const { invoiceId, amountDue, currency } = change.invoice;
    await writeInvoice(tx, scope, change.invoice, order.text);
    const { tenantId } = scope;
    if (change.failed) await emit(tx, [happened(scope, contract.billing.events.paymentFailed, tenantId, { tenantId, invoiceId, amountDue, currency })]);
  };

  return async (payload: string, signature: string): Promise<{ received: true; duplicate: boolean }> => {
    const event = await read(payload, signature);
    const tenantId = event.change?.tenantId;
    const isNew = await db.tx(async (tx) => {
      if (!(await insertProviderEvent(tx, event))) return false;
      if (tenantId === undefined) return true;
      await subscriptions.lock(tx, { tenantId });
      // An event of another installation, or of a tenant that is gone, has no facts.
      if ((await tenants.facts(tx, { tenantId })) !== null) await apply(tx, { tenantId }, event);
      return true;
    });
    if (tenantId !== undefined) tenants.forget(tenantId);
    return { received: true, duplicate: !isNew };
  };
};
