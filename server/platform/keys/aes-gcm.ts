// The one cipher of what is sealed at rest: AES-256-GCM with a new nonce each time. Layout: nonce, ciphertext, tag.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
export const CIPHER_OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES;

/** `bound` is authenticated and not stored: opening needs the same. */
export const encrypt = (key: Uint8Array, plain: Uint8Array, bound: Uint8Array): Uint8Array<ArrayBuffer> => {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(bound);
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
};

/** Null: another key, something else bound, or a changed byte. */
export const decrypt = (key: Uint8Array, sealed: Uint8Array, bound: Uint8Array): Buffer | null => {
  if (sealed.length < CIPHER_OVERHEAD_BYTES) return null;
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES)).setAAD(bound).setAuthTag(sealed.subarray(-TAG_BYTES));
  const plain = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([plain, decipher.final()]);
  } catch {
    return null;
  }
};
