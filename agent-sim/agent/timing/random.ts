// Random numbers from a seed, so that a run can be repeated with the same load and jitter.
export type Random = () => number;

/** mulberry32: small and fast, good enough for jitter and load, not for secrets. */
export const createRandom = (seed: number): Random => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

export const between = (random: Random, low: number, high: number): number => low + random() * (high - low);

/** The value plus or minus at most `pct` percent. */
export const jittered = (random: Random, value: number, pct: number): number => value * (1 + between(random, -pct, pct) / 100);
