// Seconds that somebody else names, in a header, in a close reason or in JSON: the only function that reads them.

const SECONDS = /^\d{1,15}(?:\.\d{1,15})?$/;

/** A whole or fractional number of seconds from zero; null for anything else, such as a sign, a unit, an exponent or a date. */
export const readSeconds = (given: unknown): number | null => {
  const seconds = typeof given === "string" && SECONDS.test(given.trim()) ? Number(given) : given;
  return typeof seconds === "number" && Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
};
