// Size and depth of JSON values that others send.

/** Bytes of the value as JSON in UTF-8. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "");

/** Whether objects and arrays are nested deeper than `max`. Stops at the bound, so a hostile value costs nothing. */
export const isDeeperThan = (value: unknown, max: number): boolean => {
  if (typeof value !== "object" || value === null) return false;
  return max === 0 || Object.values(value).some((inner) => isDeeperThan(inner, max - 1));
};
