// Rejects what PostgreSQL cannot store: NUL, broken UTF-16 and bottomless nesting. Every transport checks it once, so no insert fails later with a 500.
const MAX_DEPTH = 32;
const MAX_KEYS = 10_000;

/** Whether PostgreSQL can store the text unchanged. */
export const isStorableText = (text: string): boolean => badText(text) === null;

const badText = (text: string): string | null =>
  text.includes("\u0000") ? "contains a NUL character" : text.isWellFormed() ? null : "contains broken Unicode";

/** Libraries that copy an object drop this name in silence, and what is left may mean something else. */
export const badInputName = (name: string): string | null => (name === "__proto__" ? "has a field with the name __proto__" : badText(name));

/** Why a parsed JSON value cannot be stored, or null. */
export const unstorable = (value: unknown, badName: (name: string) => string | null = badText): string | null => {
  let budget = MAX_KEYS;
  const walk = (part: unknown, depth: number): string | null => {
    if (typeof part === "string") return badText(part);
    if (typeof part !== "object" || part === null) return null;
    if (depth >= MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} levels`;
    for (const [key, child] of Object.entries(part)) {
      budget -= 1;
      if (budget < 0) return `has more than ${MAX_KEYS} values`;
      const problem = badName(key) ?? walk(child, depth + 1);
      if (problem !== null) return problem;
    }
    return null;
  };
  return walk(value, 0);
};
