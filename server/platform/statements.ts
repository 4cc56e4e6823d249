// Names for statements that come again and again, so that PostgreSQL parses and plans them once per connection instead of every time:
// for the queue's statements that was more than half of its work.
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";

/** Texts put together for one occasion never come so often, and need no place in the server's memory. */
const USES_BEFORE_NAME = 20;
/** Far more than there are statements in this code. */
const MAX_TEXTS = 1_000;

interface Use {
  count: number;
  readonly name: string;
}

/** Undefined for a text that is not yet known to come often. One name per text, whatever the connection; the driver remembers where it is prepared. */
export const createStatementNames = (): ((text: string) => string | undefined) => {
  const uses = new LRUCache<string, Use>({ max: MAX_TEXTS });
  return (text) => {
    const use = uses.get(text);
    if (use === undefined) {
      uses.set(text, { count: 1, name: `m_${createHash("sha256").update(text).digest("hex").slice(0, 24)}` });
      return undefined;
    }
    use.count += 1;
    return use.count > USES_BEFORE_NAME ? use.name : undefined;
  };
};
