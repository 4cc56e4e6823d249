// Runs the work on one thing in order, and the work on different things side by side.

/** A failure is the caller's and does not stop what follows. */
export const createTurns = () => {
  const tails = new Map<string, Promise<unknown>>();
  const inTurn = <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const done = (tails.get(key) ?? Promise.resolve()).then(work, work);
    const forget = (): void => {
      if (tails.get(key) === done) tails.delete(key);
    };
    tails.set(key, done);
    done.then(forget, forget);
    return done;
  };
  return Object.assign(inTurn, {
    /** Resolves when the work that has been given by now has ended, however. */
    whenIdle: async (): Promise<void> => {
      await Promise.allSettled(tails.values());
    },
  });
};
