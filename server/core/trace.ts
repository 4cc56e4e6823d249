// W3C Trace Context: what a caller says its call belongs to. It travels with a command to the agent and into every line of the log on its way.

// What a later version adds behind these fields is not for us.
const TRACEPARENT = /^(?:00(?=.{53}$)|(?!00|ff)[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

/** In the form of version 00; null for what is none, which is ignored as the standard asks. */
export const readTraceparent = (given: string | undefined): string | null => {
  if (given === undefined) return null;
  const [, traceId, parentId, flags] = TRACEPARENT.exec(given.trim()) ?? [];
  return traceId === undefined ? null : `00-${traceId}-${parentId}-${flags}`;
};

/** What one searches for in every log that a trace passes. */
export const traceIdOf = (traceparent: string): string | undefined => traceparent.split("-")[1];
