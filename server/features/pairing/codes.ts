// Pairing codes: eight letters without vowels, so that none spells a word; read aloud, typed by people, kept as a hash.
import { createHash, randomInt } from "node:crypto";

const ALPHABET = "BCDFGHJKLMNPQRSTVWXZ";
const LETTERS = 8;
const VALID = new RegExp(`^[${ALPHABET}]{${LETTERS}}$`);

export const newCode = (): string => Array.from({ length: LETTERS }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join("");

/** As people see it: XXXX-XXXX. */
export const showCode = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`;

/** Upper case, letters only; null when it cannot be a code, so that nothing is looked up for it. */
export const readCode = (typed: string): string | null => {
  const code = typed.toUpperCase().replace(/[^A-Z]/g, "");
  return VALID.test(code) ? code : null;
};

/** Codes and tokens are kept as this only. */
export const secretHash = (secret: string): Buffer<ArrayBuffer> => createHash("sha256").update(secret).digest();
