// A throttle: what several calls ask for within a moment is done once.

/** Does `work` once, `waitMs` after the first of several calls. */
export const createThrottle = (work: () => void, waitMs: () => number): (() => void) => {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      work();
    }, waitMs());
  };
};
