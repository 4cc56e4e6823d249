// Rows of invoices, written by the provider's events.
import { Invoice, type Page } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { recordOf } from "../../../core/rows/records.ts";
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

const listInvoices = createListing("invoices", { issuedAt: { kind: "time" } }, { column: "invoiceId", kind: "text" });

export const pageOfInvoices = (db: Clients, scope: SystemScope, query: Parameters<typeof listInvoices>[0]): Promise<Page<Invoice>> => {
  const { invoice } = db.for(scope);
  return listInvoices(query, {
    owner: scope.tenantId,
    rows: (asked) => invoice.findMany(asked),
    count: () => invoice.count(),
    record: (row) => recordOf(Invoice, row),
  });
};
