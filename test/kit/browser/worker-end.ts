// What the test files of one worker share: made at its first use, ended with the worker.

interface Made<T> {
  readonly value: T;
  readonly end: () => Promise<void>;
}

/** Lives as long as the worker; the environment of these tests, which has modules of its own, reads it too. */
const ENDS = Symbol.for("mooring.test.worker-ends");
type Ends = (() => Promise<void>)[];
const endsOf = (worker: object): Ends | undefined => Reflect.get(worker, ENDS);

/** Called when the worker starts. */
export const openWorker = (worker: object): void => void Reflect.set(worker, ENDS, []);

/** Ends what the files shared, the last first: a page closes before its gateway. */
export const closeWorker = async (worker: object): Promise<void> => {
  for (const end of (endsOf(worker) ?? []).reverse()) await end();
};

/** Makes it at most once for all files of the worker. A start that fails is tried again by the next file. */
export const onceAWorker = <T>(what: string, make: () => Promise<Made<T>>): (() => Promise<T>) => {
  let made: Promise<T> | undefined;
  return () => {
    const ends = endsOf(globalThis);
    if (ends === undefined)
      throw new Error(`nobody ends the ${what}: its files belong to a project of test/vitest.config.ts with the environment for browsers`);
    made ??= make().then(({ value, end }) => {
      ends.push(end);
      return value;
    });
    made.catch(() => {
      made = undefined;
    });
    return made;
  };
};
