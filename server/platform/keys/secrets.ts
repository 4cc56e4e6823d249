// Encryption of secrets at rest: AES-256-GCM with a key derived from the master key, bound to the row of the secret.
import { createHash, hkdfSync } from "node:crypto";
import { CIPHER_OVERHEAD_BYTES, decrypt, encrypt } from "./aes-gcm.ts";
import type { SealedContext } from "./sealed.ts";

export interface SecretBox {
  /** `context` names the purpose and the row, e.g. `device-secret|ten_1|dev_1`; `open` needs the same one. */
  seal(plain: string, context: SealedContext): Uint8Array<ArrayBuffer>;
  /** Throws SecretBoxError for an unknown master key, another context or a changed byte. */
  open(sealed: Uint8Array, context: SealedContext): string;
  /** 32 bytes that depend on master key and context alone, for secrets that must be the same each time. */
  derive(context: string): Uint8Array;
  /** The same by each key that opens, the one that seals first: to recognise what a former key derived. */
  deriveAll(context: string): readonly Uint8Array[];
  /** For bytes that do not live long: sealed by keys of this purpose alone, without the id of a key, so a rotation of the master key passes them by. */
  boxFor(purpose: string): ByteBox;
  /** Which key seals, as eight hexadecimal digits that reveal nothing of it. */
  readonly keyId: string;
}

export interface ByteBox {
  seal(plain: Uint8Array, context: string): Uint8Array<ArrayBuffer>;
  /** Null: another context, a changed byte, or a master key that is gone. */
  open(sealed: Uint8Array, context: string): Buffer | null;
}

export class SecretBoxError extends Error {
  override readonly name = "SecretBoxError";
}

const VERSION = 1;
const KEY_BYTES = 32;
const KEY_ID_BYTES = 4;
const HEADER_BYTES = 1 + KEY_ID_BYTES;
const OVERHEAD_BYTES = HEADER_BYTES + CIPHER_OVERHEAD_BYTES;

const expand = (masterKey: Uint8Array, purpose: string): Buffer => Buffer.from(hkdfSync("sha256", masterKey, "", purpose, KEY_BYTES));

interface Key {
  readonly id: string;
  readonly key: Buffer;
  readonly header: Buffer;
  readonly derivation: Buffer;
}

const toKey = (masterKey: Uint8Array): Key => {
  if (masterKey.length !== KEY_BYTES) throw new SecretBoxError(`the master key must be ${KEY_BYTES} bytes, it is ${masterKey.length}`);
  const key = expand(masterKey, "mooring at rest v1");
  const id = createHash("sha256").update(key).digest().subarray(0, KEY_ID_BYTES);
  return { id: id.toString("hex"), key, header: Buffer.concat([Buffer.from([VERSION]), id]), derivation: expand(masterKey, "mooring derived secrets v1") };
};

/** Null for bytes that no key has sealed. */
export const keyIdOf = (sealed: Uint8Array): string | null =>
  sealed.length < OVERHEAD_BYTES || sealed[0] !== VERSION ? null : Buffer.from(sealed.subarray(1, HEADER_BYTES)).toString("hex");

/** Layout: version, key id, and what the cipher makes. The header is authenticated with the context. The first key seals; the other one only opens. */
export const createSecretBox = (masterKey: Uint8Array, other?: Uint8Array): SecretBox => {
  const sealing = toKey(masterKey);
  const keys = [sealing, ...(other === undefined ? [] : [toKey(other)])];
  const deriveAll = (context: string): readonly Uint8Array[] => keys.map(({ derivation }) => expand(derivation, context));
  const bind = ({ header }: Key, context: string) => Buffer.concat([header, Buffer.from(context, "utf8")]);
  return {
    keyId: sealing.id,
    seal: (plain, context) => Buffer.concat([sealing.header, encrypt(sealing.key, Buffer.from(plain, "utf8"), bind(sealing, context))]),
    open: (sealed, context) => {
      const id = keyIdOf(sealed);
      if (id === null) throw new SecretBoxError("this is not a sealed secret of a known version");
      const found = keys.find((each) => each.id === id);
      if (found === undefined) throw new SecretBoxError(`sealed with another master key (${id})`);
      const plain = decrypt(found.key, sealed.subarray(HEADER_BYTES), bind(found, context));
      if (plain === null) throw new SecretBoxError("does not open: it was changed or belongs to another row");
      return plain.toString("utf8");
    },
    derive: (context) => expand(sealing.derivation, context),
    deriveAll,
    boxFor: (purpose) => {
      const own = deriveAll(purpose);
      const newest = expand(sealing.derivation, purpose);
      return {
        seal: (plain, context) => encrypt(newest, plain, Buffer.from(context, "utf8")),
        open: (sealed, context) => {
          for (const key of own) {
            const plain = decrypt(key, sealed, Buffer.from(context, "utf8"));
            if (plain !== null) return plain;
          }
          return null;
        },
      };
    },
  };
};
