// Rows of invoices, written by the provider's events.
import { Invoice, type Window } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { recordOf } from "../../../core/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { InvoiceState } from "../provider.ts";

/** Keeps the newer one. Write under the lock of the tenant's plan. */
export const writeInvoice = async (tx: Clients, scope: SystemScope, { invoiceId, ...state }: InvoiceState, providerOrder: string): Promise<void> => {
  const { invoice } = tx.for(scope);
  const known = await invoice.findFirst({ where: { invoiceId }, select: { providerOrder: true } });
  if (known !== null && known.providerOrder >= providerOrder) return;
  const columns = { ...state, providerOrder };
  await invoice.upsert({ where: { tenantId_invoiceId: { invoiceId } }, create: { invoiceId, ...columns }, update: columns });
};

export const pageOfInvoices = async (db: Clients, scope: SystemScope, { limit, offset }: Window): Promise<{ items: Invoice[]; total: number }> => {
  const { invoice } = db.for(scope);
  const [rows, total] = await Promise.all([
    invoice.findMany({ orderBy: [{ issuedAt: "desc" }, { invoiceId: "desc" }], take: limit, skip: offset }),
    invoice.count(),
  ]);
  return { items: rows.map((row) => recordOf(Invoice, row)), total };
};
