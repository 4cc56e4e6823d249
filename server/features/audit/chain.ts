// The hash chain of a tenant's log. Each record's hash covers the record and the hash before it; the signature covers both ends of the chain, so
// that whoever can write to the database, but has no master key, can neither change, remove nor reorder records without being found.
import { createHmac, timingSafeEqual } from "node:crypto";
import { fingerprint } from "../../core/rows/fingerprint.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";

/** A record's columns. Whatever they hold, the hash covers. */
export interface LoggedRow {
  readonly auditId: string;
  readonly tenantId: string;
  readonly sequence: number;
  readonly at: Date;
  readonly actorType: string;
  readonly actorId: string;
  readonly actorEmail: string | null;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly action: string;
  readonly resourceType: string;
  readonly resourceId: string | null;
  readonly outcome: string;
  readonly code: string | null;
  readonly requestId: string | null;
  readonly changes: unknown;
  readonly omitted: number;
  readonly previousHash: Uint8Array;
}

export interface SealedRow extends LoggedRow {
  readonly hash: Uint8Array;
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** SHA-256 of the columns as JSON without spaces, with sorted names, the time as ISO text and `previousHash` in hexadecimal. */
export const hashOfRow = (row: LoggedRow | SealedRow): Buffer => {
  const { hash: _, at, previousHash, ...same } = row as SealedRow; // as: a row that is not sealed yet has no hash to leave out
  return fingerprint({ ...same, at: at.toISOString(), previousHash: hex(previousHash) });
};

export interface Chain {
  readonly tenantId: string;
  /** The number of the newest record. */
  readonly sequence: number;
  readonly hash: Uint8Array;
  /** The number of the last record that retention has deleted; 0 before the first time. */
  readonly anchorSequence: number;
  readonly anchorHash: Uint8Array;
}

export interface SignedChain extends Chain {
  readonly signature: Uint8Array;
}

export interface ChainSigner {
  sign(chain: Chain): Buffer;
  /** By the key that signs or by the other one that this node has. */
  isSigned(chain: SignedChain): boolean;
}

export const createChainSigner = (secretBox: Pick<SecretBox, "deriveAll">): ChainSigner => {
  const [newest = new Uint8Array(), ...former] = secretBox.deriveAll("audit chain");
  const signWith = (key: Uint8Array, { tenantId, sequence, hash, anchorSequence, anchorHash }: Chain): Buffer =>
    createHmac("sha256", key)
      .update([tenantId, sequence, hex(hash), anchorSequence, hex(anchorHash)].join("|"))
      .digest();
  return {
    sign: (chain) => signWith(newest, chain),
    isSigned: (chain) => chain.signature.length === 32 && [newest, ...former].some((key) => timingSafeEqual(chain.signature, signWith(key, chain))),
  };
};
