// A pairing code as people type it: any case, with or without spaces and the dash.

export const LETTERS = 8;
export const lettersOf = (typed: string): string =>
  typed
    .toUpperCase()
    .replace(/[^A-Z]/g, "")
    .slice(0, LETTERS);

/** As people read it, as far as it was typed: `XXXX-XX`. */
export const showCode = (typed: string): string => lettersOf(typed).replace(/^(.{4})(.+)$/, "$1-$2");
export const isWhole = (typed: string): boolean => lettersOf(typed).length === LETTERS;
/** Codes have no vowels and no digits, so one with any was misread. */
export const hasStrange = (typed: string): boolean => /[AEIOUY\d]/i.test(typed);
export const isCode = (typed: string): boolean => /^[B-DF-HJ-NP-TV-XZ]{8}$/.test(lettersOf(typed));
