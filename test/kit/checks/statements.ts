// Counts the statements of one piece of work, and none that the rest of the process sends meanwhile.
import { AsyncLocalStorage } from "node:async_hooks";
import pg from "pg";
import { vi } from "vitest";

const counted = new AsyncLocalStorage<{ count: number }>();

/** The statements that `work` sends to PostgreSQL in this process, BEGIN and COMMIT among them, and what it returns. */
export const countStatements = async <T>(work: () => Promise<T>): Promise<{ readonly count: number; readonly result: T }> => {
  const sent = { count: 0 };
  const query = pg.Client.prototype.query as (...given: unknown[]) => unknown;
  const spy = vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (this: pg.Client, ...given: unknown[]) {
    const current = counted.getStore();
    if (current !== undefined) current.count += 1;
    return query.apply(this, given);
  } as never);
  try {
    const result = await counted.run(sent, work);
    return { count: sent.count, result };
  } finally {
    spy.mockRestore();
  }
};
