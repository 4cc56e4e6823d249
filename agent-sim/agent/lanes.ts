// Runs the commands of one lane one after another, and different lanes in parallel.
export interface Lanes {
  /** Starts the task once every earlier task of its lane has ended. Tasks handle their own errors. */
  run(lane: string, task: () => Promise<void>): void;
  readonly busy: number;
}

export const createLanes = (): Lanes => {
  const tails = new Map<string, Promise<void>>();
  return {
    run: (lane, task) => {
      const tail = (tails.get(lane) ?? Promise.resolve()).then(task).finally(() => {
        if (tails.get(lane) === tail) tails.delete(lane);
      });
      tails.set(lane, tail);
    },
    get busy() {
      return tails.size;
    },
  };
};
