// Writes the record of a transaction: reads what PostgreSQL kept of its changes, takes the next place in the tenant's chain and signs the new end.

import type { SqlTx } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import type { AuditEntry, AuditTrail } from "../../core/ports/audit.ts";
import { INSTALLATION } from "../../core/ports/security.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import { type Chain, type ChainSigner, createChainSigner, hashOfRow, type SealedRow } from "./chain.ts";
import { type Captured, readChanges } from "./changes.ts";
import { appendRow, CAPTURE, type LockedChain, lockChain, readCaptured } from "./store.ts";

const MAX_HEADER = 256;
const headerText = (text: string | null | undefined): string | null => text?.slice(0, MAX_HEADER).replaceAll("\0", "").toWellFormed() ?? null;

export const createAuditTrail = ({ secretBox }: { readonly secretBox: Pick<SecretBox, "deriveAll"> }): AuditTrail => {
  const signer = createChainSigner(secretBox);
  return {
    begin: (tx) => {
      // Not waited for: the next statement follows on its heels, and a failure fails the transaction.
      const begun = tx.query(CAPTURE);
      begun.catch(() => undefined);
    },
    append: async (tx, entry) => {
      const { lines, seen } = await readCaptured(tx);
      if (seen === 0 && entry.onlyChanges === true) return;
      const captured = readChanges(lines);
      const own = [...new Set(captured.flatMap(({ tenantId }) => (tenantId === null ? [] : [tenantId])))].sort();
      const tenants = entry.tenantId !== null ? [entry.tenantId] : own.length > 0 ? own : [INSTALLATION];
      const omitted = seen - captured.length;
      for (const tenantId of tenants) {
        const changes = tenants.length === 1 ? captured : captured.filter((each) => each.tenantId === tenantId || each.tenantId === null);
        await appendTo(tx, tenantId, { entry, changes, omitted, signer });
      }
    },
  };
};

interface Appending {
  readonly entry: AuditEntry;
  readonly changes: readonly Captured[];
  readonly omitted: number;
  readonly signer: ChainSigner;
}

const appendTo = async (tx: SqlTx, tenantId: string, { entry, changes, omitted, signer }: Appending): Promise<void> => {
  const end = await lockChain(tx, tenantId);
  const { actor, action, resource, code, call } = entry;
  const [only] = changes;
  const row = {
    auditId: newId("aud"),
    tenantId,
    sequence: end.sequence + 1,
    at: end.at,
    actorType: actor.type,
    actorId: actor.id,
    actorEmail: actor.email,
    ip: call?.ip ?? null,
    userAgent: headerText(call?.userAgent),
    action,
    resourceType: resource.type,
    // An operation on no named resource that changes one row is about that row.
    resourceId: resource.id ?? (changes.length === 1 ? (only?.change.id ?? null) : null),
    outcome: code === null ? "success" : "refused",
    code,
    requestId: call?.requestId ?? null,
    changes: changes.map(({ change }) => change),
    omitted,
    previousHash: end.hash,
  };
  const sealed: SealedRow = { ...row, hash: hashOfRow(row) };
  const written = appendRow(tx, sealed, signatureAfter(end, sealed, signer));
  if (tx.defer === undefined) await written;
  else tx.defer(written);
};

/** A broken signature stays: a good one over an end that somebody has moved would hide it. */
const signatureAfter = (end: LockedChain, { sequence, hash }: SealedRow, signer: ChainSigner): Uint8Array => {
  const next: Chain = { ...end, sequence, hash };
  return end.sequence === 0 || signer.isSigned(end) ? signer.sign(next) : end.signature;
};
