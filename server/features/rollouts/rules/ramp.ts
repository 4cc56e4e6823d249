// How many devices of a phase may be under way at once, and when the phase has failed.

/** Whether the phase can no longer reach the share of successes that it needs. */
export const isOutOfReach = (failures: number, size: number, minSuccessPercent: number): boolean => failures * 100 > (100 - minSuccessPercent) * size;

/** The devices at the beginning of each phase. A version that fails everywhere reaches so many devices. */
const FIRST = 5;

/**
 * How many devices of a phase may be under way. Growth follows what has succeeded, and the place of a failed device is not filled again, so that a version
 * that fails everywhere stays with the first five.
 */
export const rampOf = (succeeded: number, failures: number): number => Math.max(1, Math.max(FIRST, succeeded) - failures);
