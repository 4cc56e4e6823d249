// The newest lines of a log, as many as a record holds. Agent and gateway count alike.

const MAX_LINES = 20;
const MAX_BYTES = 4_096;

/** At most 20 lines and 4 KiB. */
export const newestLines = (lines: readonly string[]): string[] => {
  const kept: string[] = [];
  let bytes = 0;
  for (const line of lines.slice(-MAX_LINES).reverse()) {
    bytes += new TextEncoder().encode(line).length + 1;
    if (bytes > MAX_BYTES) break;
    kept.unshift(line);
  }
  return kept;
};
