// Deletes a tenant's rows from all tables, in rounds.
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import { deleteDispatched } from "../outbox/outbox-rows.ts";
import { unlessReferenced } from "./db-errors.ts";
import { TENANT_MODELS } from "./tenant-client.ts";

interface Deleting {
  deleteMany(args: { readonly where?: object; readonly limit: number }): Promise<{ readonly count: number }>;
}
/** The tenant's own row goes last. The audit log is append-only and outlives its tenant: its rows stay until their retention ends. */
const NOT_PURGED: ReadonlySet<string> = new Set(["tenant", "auditLog", "auditChain", "outboxEvent", "outboxPending", "outboxDispatch"]);

/**
 * Deletes up to `limit` rows of the tenant from every table with a tenant, except the log and its own row. `waiting`: only undispatched events are left,
 * which are still to be told.
 */
export const deleteRowsOf = async (clients: Pick<Clients, "for"> & SqlTx, scope: SystemScope, limit: number): Promise<"more" | "waiting" | "done"> => {
  const client = clients.for(scope);
  let deleted = await deleteDispatched(clients, scope, limit);
  for (const { key } of TENANT_MODELS.filter((model) => !NOT_PURGED.has(model.key))) {
    const rows = client[key as keyof typeof client] as unknown as Deleting; // as: every model has the operation
    // A row that others still point to goes in a later round, after them.
    deleted += (await unlessReferenced(rows.deleteMany({ limit })))?.count ?? 0;
  }
  if (deleted > 0) return "more";
  return (await client.outboxPending.count()) > 0 ? "waiting" : "done";
};
