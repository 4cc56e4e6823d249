// One copy of texts that many objects keep, such as the id of a tenant: equal texts from the database are each their own otherwise.
import { LRUCache } from "lru-cache";

/** For texts that come up often; `max` of them are remembered. */
export const createStringInterner = (max: number): (<T extends string>(text: T) => T) => {
  const known = new LRUCache<string, string>({ max });
  return <T extends string>(text: T): T => {
    const same = known.get(text);
    if (same === undefined) known.set(text, text);
    return (same ?? text) as T; // as: equal to the text
  };
};
