// Bytes for people.
const MEGABYTE = 1_048_576;
const round = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
/** Such as `812 MB` and `3.9 GB`. */
export const bytesText = (bytes: number): string =>
  bytes < 1_000 * MEGABYTE ? `${round.format(bytes / MEGABYTE)} MB` : `${round.format(bytes / MEGABYTE / 1_024)} GB`;
