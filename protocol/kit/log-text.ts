// What the agent and the gateway do alike with the lines of a log: hide secrets, and keep the newest lines that a record holds.

/** A shorter value would hide half of the text and is no secret. */
const MIN_HIDDEN = 4;
const MAX_LINES = 20;
const MAX_BYTES = 4_096;

/** What to hide: each secret, and each line of one that has several. The longest first, in case one contains another. */
export const hiddenTexts = (secrets: readonly string[]): readonly string[] =>
  secrets
    .flatMap((secret) => [secret, ...secret.split(/\r?\n/)])
    .filter((text) => text.length >= MIN_HIDDEN)
    .sort((a, b) => b.length - a.length);

/** Returns the function that hides these secrets in a text. */
export const masking = (secrets: readonly string[]): ((text: string) => string) => {
  const hidden = hiddenTexts(secrets);
  return (text) => hidden.reduce((left, each) => left.replaceAll(each, "***"), text);
};

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
