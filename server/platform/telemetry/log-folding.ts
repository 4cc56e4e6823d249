// Folds the log lines of one cause: while the database fails, its first line of each kind of failure tells everything, and one more line each
// period says how many followed. The line of a request stays, without the error, so that its id can be found.
import { type DatabaseFailure, failureOf } from "../database/db-errors.ts";
import type { Log } from "./log.ts";

const PERIOD_MS = 10_000;

const withoutError = (fields: object): object => Object.fromEntries(Object.entries(fields).filter(([name]) => name !== "error"));

export const foldFailures = (log: Log, periodMs = PERIOD_MS): Log => {
  const counts = new Map<DatabaseFailure, number>();

  const openPeriod = (failure: DatabaseFailure): void => {
    counts.set(failure, 0);
    setTimeout(() => {
      const count = counts.get(failure) ?? 0;
      counts.delete(failure);
      if (count === 0) return;
      log.warn({ failure, count, seconds: periodMs / 1_000 }, "the database went on failing in the same way");
      openPeriod(failure);
    }, periodMs).unref();
  };

  const folding =
    (level: "warn" | "error") =>
    (fields: object, message: string): void => {
      const failure = "error" in fields ? failureOf(fields.error) : null;
      const count = failure === null ? undefined : counts.get(failure);
      if (failure === null || count === undefined) {
        if (failure !== null) openPeriod(failure);
        log[level](fields, message);
        return;
      }
      counts.set(failure, count + 1);
      if ("requestId" in fields) log.info({ ...withoutError(fields), failure }, message);
    };

  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: folding("warn"),
    error: folding("error"),
  };
};
