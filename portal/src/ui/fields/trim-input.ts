// What people type or paste, as it is meant.

/** One word per entry, whatever stands between them. */
export const wordsOf = (typed: string): string[] => typed.split(/[\s,]+/).filter((word) => word !== "");

/** Accepts a whole link as well as its token. */
export const tokenOf = (typed: string): string => (URL.canParse(typed) ? (new URL(typed).searchParams.get("token") ?? typed) : typed).trim();
