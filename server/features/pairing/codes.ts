// Pairing codes: eight letters that people read aloud and type, without vowels so none spells a word. The database has only their hash.
import { createHash, randomInt } from "node:crypto";

const ALPHABET = "BCDFGHJKLMNPQRSTVWXZ";
const LETTERS = 8;
const VALID = new RegExp(`^[${ALPHABET}]{${LETTERS}}$`);

export const newCode = (): string => Array.from({ length: LETTERS }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join("");

/** Formats a code for people: XXXX-XXXX. */
export const showCode = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`;

/** Normalises a typed code; null when it cannot be one, which saves the query. */
export const readCode = (typed: string): string | null => {
  const code = typed.toUpperCase().replace(/[^A-Z]/g, "");
  return VALID.test(code) ? code : null;
};

/** Six digits that the machine and the portal show for one pairing. A stranger who copies the fingerprint has another token, so other digits. */
export const comparisonOf = (pollTokenHash: Uint8Array, fingerprint: string): string => {
  const number = createHash("sha256").update(pollTokenHash).update(fingerprint).digest().readUInt32BE() % 1_000_000;
  return String(number)
    .padStart(6, "0")
    .replace(/^(...)/, "$1 ");
};
