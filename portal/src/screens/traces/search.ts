// What the URLs of the traces say.
import { given, oneOf, type Search, textOf, textsOf } from "../../api/search.ts";

export const WINDOWS = ["15m", "1h", "6h", "24h"] as const;
export const OUTCOMES = ["ok", "error"] as const;

const matching = (value: unknown, pattern: RegExp): string | undefined => {
  const text = textOf(value);
  return text !== undefined && pattern.test(text) ? text : undefined;
};

export const readTraceSearch = (search: Search) =>
  given({
    ...textsOf(search, ["service", "operation"]),
    device: matching(search["device"], /^dev_\w{1,64}$/),
    status: oneOf(search["status"], OUTCOMES),
    /** In milliseconds. */
    min: matching(search["min"], /^\d{1,8}$/),
    window: oneOf(search["window"], WINDOWS),
  });
export type TraceSearch = ReturnType<typeof readTraceSearch>;

export const readOneTraceSearch = (search: Search) => textsOf(search, ["span"]);
