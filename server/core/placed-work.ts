// Long work of which the whole installation does a few pieces at once. Each holds a place, and a lock of its own, for as long as the session lasts that reads
// for it, so there is no lease to run out. If its node dies, another one begins it anew.

interface Locking {
  /** False: another session has the lock of this name. It lasts as long as the session. */
  lock(name: string): Promise<boolean>;
}

export interface PlacedWork<S extends Locking, F, R extends { readonly attempt: number }> {
  /** Names the places. */
  readonly name: string;
  /** A node with 0 leaves all of it to others. */
  readonly places: number;
  /** What could be begun now, of all tenants, the oldest first. */
  readonly findWaiting: (limit: number) => Promise<readonly F[]>;
  readonly withSession: <T>(run: (session: S) => Promise<T>) => Promise<T>;
  readonly lockOf: (found: F) => string;
  /** Null: it has ended meanwhile. */
  readonly begin: (found: F) => Promise<R | null>;
  readonly make: (session: S, row: R, signal: AbortSignal) => Promise<void>;
  /** So many nodes have died with it that it is not begun again. */
  readonly giveUp: (row: R) => Promise<void>;
}

export const WORK_ATTEMPTS = 3;
const TRIED = 16;

const takePlace = async (session: Locking, name: string, places: number): Promise<boolean> => {
  for (let place = 0; place < places; place += 1) if (await session.lock(`${name} place ${place}`)) return true;
  return false;
};

/** Makes one piece of those that wait. True: look for another one. */
export const createPlacedWork =
  <S extends Locking, F, R extends { readonly attempt: number }>(work: PlacedWork<S, F, R>) =>
  async (signal: AbortSignal): Promise<boolean> => {
    const waiting = work.places === 0 ? [] : await work.findWaiting(TRIED);
    if (waiting.length === 0) return false;
    return work.withSession(async (session) => {
      if (!(await takePlace(session, work.name, work.places))) return false;
      for (const found of waiting) {
        if (!(await session.lock(work.lockOf(found)))) continue;
        const row = await work.begin(found);
        if (row === null) continue;
        if (row.attempt > WORK_ATTEMPTS) await work.giveUp(row);
        else await work.make(session, row, signal);
        return !signal.aborted;
      }
      return false;
    });
  };
