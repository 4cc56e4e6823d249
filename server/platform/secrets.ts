// Encryption of secrets at rest: AES-256-GCM with a key derived from the master key, bound to the row of the secret.
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";

export interface SecretBox {
  /** `context` names the purpose and the row, e.g. `device-secret|ten_1|dev_1`; `open` needs the same one. */
  seal(plain: string, context: string): Uint8Array<ArrayBuffer>;
  /** Throws SecretBoxError for another master key, another context or a changed byte. */
  open(sealed: Uint8Array, context: string): string;
  /** 32 bytes that depend on master key and context alone, for secrets that must be the same each time. */
  derive(context: string): Uint8Array;
}

export class SecretBoxError extends Error {
  override readonly name = "SecretBoxError";
}

const VERSION = 1;
const KEY_BYTES = 32;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES;
const OVERHEAD_BYTES = HEADER_BYTES + NONCE_BYTES + TAG_BYTES;

const expand = (masterKey: Uint8Array, purpose: string): Buffer => Buffer.from(hkdfSync("sha256", masterKey, "", purpose, KEY_BYTES));

/** Layout: version, key id, nonce, ciphertext, tag. The header is authenticated with the context. */
export const createSecretBox = (masterKey: Uint8Array): SecretBox => {
  if (masterKey.length !== KEY_BYTES) throw new SecretBoxError(`the master key must be ${KEY_BYTES} bytes, it is ${masterKey.length}`);
  const key = expand(masterKey, "mooring at rest v1");
  const derivation = expand(masterKey, "mooring derived secrets v1");
  const header = Buffer.concat([Buffer.from([VERSION]), createHash("sha256").update(key).digest().subarray(0, KEY_ID_BYTES)]);
  const bind = (context: string) => Buffer.concat([header, Buffer.from(context, "utf8")]);
  return {
    seal: (plain, context) => {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(bind(context));
      return Buffer.concat([header, nonce, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()]);
    },
    open: (sealed, context) => {
      if (sealed.length < OVERHEAD_BYTES || sealed[0] !== VERSION) throw new SecretBoxError("this is not a sealed secret of a known version");
      if (!header.equals(sealed.subarray(0, HEADER_BYTES))) throw new SecretBoxError("sealed with another master key");
      const nonce = sealed.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES);
      const decipher = createDecipheriv("aes-256-gcm", key, nonce).setAAD(bind(context)).setAuthTag(sealed.subarray(-TAG_BYTES));
      const plain = decipher.update(sealed.subarray(HEADER_BYTES + NONCE_BYTES, -TAG_BYTES));
      try {
        return Buffer.concat([plain, decipher.final()]).toString("utf8");
      } catch (cause) {
        throw new SecretBoxError("does not open: it was changed or belongs to another row", { cause });
      }
    },
    derive: (context) => expand(derivation, context),
  };
};
