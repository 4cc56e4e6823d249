// The session of the snapshot in which work runs. It travels with the work, across every await.
import { AsyncLocalStorage } from "node:async_hooks";
import type pg from "pg";

const storage = new AsyncLocalStorage<pg.PoolClient>();

/** Undefined outside of a snapshot. */
export const snapshotSession = (): pg.PoolClient | undefined => storage.getStore();

export const withinSnapshot = <T>(session: pg.PoolClient, work: () => Promise<T>): Promise<T> => storage.run(session, work);
