// A pairing code as people type it: any case, with or without spaces and the dash.

const LETTERS = 8;
const lettersOf = (typed: string): string =>
  typed
    .toUpperCase()
    .replace(/[^A-Z]/g, "")
    .slice(0, LETTERS);

/** As people read it, as far as it was typed: `XXXX-XX`. */
export const showCode = (typed: string): string => lettersOf(typed).replace(/^(.{4})(.+)$/, "$1-$2");
/** Codes have no vowels, so one with a vowel was misread. */
export const isCode = (typed: string): boolean => /^[B-DF-HJ-NP-TV-XZ]{8}$/.test(lettersOf(typed));
