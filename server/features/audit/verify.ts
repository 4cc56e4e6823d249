// Finds the first record of a log that is not as the gateway wrote it: changed, removed, added or in another place.
import type { Clients } from "../../core/database.ts";
import { type ChainSigner, hashOfRow, hex, type SealedRow, type SignedChain } from "./chain.ts";
import { findChain, logsAfter } from "./store.ts";

export interface Verdict {
  readonly tenantId: string;
  readonly isIntact: boolean;
  readonly records: number;
  /** The end of the chain. Keep it elsewhere: it proves later that nobody has put back an older copy of the log. */
  readonly end: { readonly sequence: number; readonly hash: string };
  readonly broken: { readonly sequence: number; readonly auditId: string | null; readonly reason: string } | null;
}

type Broken = NonNullable<Verdict["broken"]>;
const BATCH = 1_000;
const NO_CHAIN: Omit<SignedChain, "tenantId"> = {
  sequence: 0,
  hash: new Uint8Array(),
  anchorSequence: 0,
  anchorHash: new Uint8Array(),
  signature: new Uint8Array(),
};

const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

const fault = (row: SealedRow, before: { readonly sequence: number; readonly hash: Uint8Array }): Broken | null => {
  const { sequence, auditId } = row;
  if (sequence !== before.sequence + 1) return { sequence: before.sequence + 1, auditId: null, reason: "the record is missing" };
  if (!same(row.hash, hashOfRow(row))) return { sequence, auditId, reason: "the record was changed" };
  if (!same(row.previousHash, before.hash)) return { sequence, auditId, reason: "the record does not follow the one before it" };
  return null;
};

const verifyOnce = async (db: Clients, chain: SignedChain, signer: ChainSigner): Promise<Verdict> => {
  const { tenantId, sequence: end } = chain;
  let last = { sequence: chain.anchorSequence, hash: chain.anchorHash };
  const verdict = (broken: Broken | null): Verdict => ({
    tenantId,
    isIntact: broken === null,
    records: last.sequence - chain.anchorSequence,
    end: { sequence: end, hash: hex(chain.hash) },
    broken,
  });
  for (let after = 0; ; after = last.sequence) {
    const rows = await logsAfter(db, tenantId, { after, limit: BATCH });
    for (const row of rows) {
      // What was appended since the chain's end was read is the next verification's.
      const found = row.sequence > end && last.sequence === end ? null : fault(row, last);
      if (found !== null) return verdict(found);
      if (row.sequence > end) break;
      last = { sequence: row.sequence, hash: row.hash };
    }
    if (rows.length < BATCH || last.sequence >= end) break;
  }
  if (last.sequence < end) return verdict({ sequence: last.sequence + 1, auditId: null, reason: "the record is missing" });
  if (!same(last.hash, chain.hash)) return verdict({ sequence: end, auditId: null, reason: "the newest record is not the one that the chain ends with" });
  if (end > 0 && !signer.isSigned(chain)) return verdict({ sequence: end, auditId: null, reason: "the signature of the chain's ends is wrong" });
  return verdict(null);
};

export const verifyTenant = async (db: Clients, tenantId: string, signer: ChainSigner): Promise<Verdict> => {
  const read = async (): Promise<SignedChain> => (await findChain(db, tenantId)) ?? { ...NO_CHAIN, tenantId };
  for (let chain = await read(); ; ) {
    const verdict = await verifyOnce(db, chain, signer);
    const now = await read();
    // Retention may have moved the beginning, and a record that is not there was missing from neither.
    if (verdict.isIntact || now.anchorSequence === chain.anchorSequence) return afterEnd(db, now, verdict);
    chain = now;
  }
};

/** Records beyond an end that has not moved were added by nobody who could sign. */
const afterEnd = async (db: Clients, { tenantId, sequence: end }: SignedChain, verdict: Verdict): Promise<Verdict> => {
  if (!verdict.isIntact || end !== verdict.end.sequence) return verdict;
  const [extra] = await logsAfter(db, tenantId, { after: end, limit: 1 });
  const chain = extra === undefined ? null : await findChain(db, tenantId);
  if (extra === undefined || (chain !== null && chain.sequence !== end)) return verdict;
  return { ...verdict, isIntact: false, broken: { sequence: extra.sequence, auditId: extra.auditId, reason: "the record stands behind the chain's end" } };
};
