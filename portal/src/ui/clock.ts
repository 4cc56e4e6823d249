// The gateway's time: the browser's clock, corrected where it is wrong, so that what happened a minute ago does not look like an hour ago.

/** So much may be the way of the message that tells the time. */
const TOLERATED_MS = 5_000;
let correction = 0;

export const gatewayNow = (): number => Date.now() + correction;
export const clockCorrection = (): number => correction;
export const correctClock = (ms: number): void => {
  correction = Math.abs(ms) < TOLERATED_MS ? 0 : ms;
};
