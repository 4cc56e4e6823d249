// What a transaction needs so that its change has a record in the audit log, written with the change or not at all.
import type { AuditLog } from "../../../protocol/index.ts";
import type { Tx } from "../database.ts";
import type { SqlTx } from "../events.ts";
import { actorOf, type OpenScope, type Principal } from "../scope.ts";

export type AuditActor = Pick<AuditLog["actor"], "type" | "id" | "email">;

/** The caller, as records name it. */
export const auditActorOf = (principal: Principal): AuditActor => {
  if (principal.kind !== "user") return { type: principal.kind, id: actorOf(principal), email: null };
  const { userId, email, impersonator } = principal;
  return impersonator === undefined ? { type: "user", id: userId, email } : { type: "impersonator", id: actorOf(principal), email };
};

export interface AuditEntry {
  /** The tenant whose log gets the record; null takes the tenants of the rows that changed, or the installation's log if there are none. */
  readonly tenantId: string | null;
  readonly actor: AuditActor;
  readonly action: string;
  readonly resource: AuditLog["resource"];
  /** The error code of a refusal that lets stand what was written; null for a success. */
  readonly code: string | null;
  /** Null for what nobody called: a command line. */
  readonly call: Pick<OpenScope, "requestId" | "ip" | "userAgent"> | null;
  /** No record if nothing has changed. */
  readonly onlyChanges?: true;
}

export interface AuditTrail {
  /** From here on PostgreSQL keeps what the transaction changes. */
  begin(tx: SqlTx): void;
  /** Writes the record with those changes. Call it last: until the transaction ends, no other of the tenant can write its own. */
  append(tx: SqlTx, entry: AuditEntry): Promise<void>;
}

/** The one who runs the installation's command line. */
const OPERATOR: AuditActor = { type: "operator", id: "cli", email: null };

/** Transactions of the command line, with a record of what they changed. */
export const operatorTx =
  (db: { tx<T>(run: (tx: Tx) => Promise<T>): Promise<T> }, audit: AuditTrail) =>
  <T>(action: `cli.${string}`, run: (tx: Tx) => Promise<T>): Promise<T> =>
    db.tx(async (tx) => {
      audit.begin(tx);
      const result = await run(tx);
      await audit.append(tx, {
        tenantId: null,
        actor: OPERATOR,
        action,
        resource: { type: "command-line", id: null },
        code: null,
        call: null,
        onlyChanges: true,
      });
      return result;
    });
