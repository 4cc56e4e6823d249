// Keeps one copy of strings that many objects hold, such as the id of a tenant: the driver makes a new string for each row.
import { createBoundedCache } from "./bounded-cache.ts";

/** Remembers the `max` strings that came up last. */
export const createStringInterner = (max: number): (<T extends string>(text: T) => T) => {
  const known = createBoundedCache<string>(max);
  return <T extends string>(text: T): T => {
    const same = known.get(text);
    if (same === undefined) known.set(text, text);
    return (same ?? text) as T; // as: equal to the text
  };
};
