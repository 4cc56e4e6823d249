// Bounds a command's output, which is cut beyond them.
import { isDeeperThan, jsonBytes } from "../../core/rows/json-bounds.ts";

// Deeper than people write, and not deep enough to overflow a stack here or in the database.
const MAX_OUTPUT_DEPTH = 64;

/** The output as we keep it: of one that is too long, the beginning of its text. */
export const boundOutput = (output: unknown, maxBytes: number): { readonly output: unknown; readonly truncated: boolean } => {
  if (isDeeperThan(output, MAX_OUTPUT_DEPTH)) return { output: null, truncated: true };
  if (output === undefined || jsonBytes(output) <= maxBytes) return { output, truncated: false };
  const text = typeof output === "string" ? output : JSON.stringify(output);
  return { output: beginning(text, maxBytes), truncated: true };
};

// Quotes and escapes make the JSON longer than the text, so the JSON's length decides where to cut.
const beginning = (text: string, maxBytes: number): string => {
  let [low, high] = [0, Math.min(text.length, maxBytes)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (jsonBytes(text.slice(0, middle)) <= maxBytes) low = middle;
    else high = middle - 1;
  }
  // Never half of a surrogate pair: PostgreSQL refuses such text.
  const last = text.charCodeAt(low - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? low - 1 : low);
};
