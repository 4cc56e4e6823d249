// Where a list with a cursor begins: apart from the lists, which the first screen does not need.

/** `cursor` of a list's beginning. */
export const FIRST = "*";
