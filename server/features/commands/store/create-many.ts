// Creates one caller's commands for many devices in one transaction, outside of the batches of single calls.
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/db.ts";
import type { Admission, NewCommand } from "../admission.ts";
import { type CreateFacts, createCommandRows } from "./create.ts";

// A plan that PostgreSQL kept from when the tables were empty joins a thousand keys row by row and takes half a minute.
const PLAN_ANEW = statement<{ readonly set_config: string }>("commands.planAnew", "select set_config('plan_cache_mode', 'force_custom_plan', true)");

/** In the order of the items. */
export const createManyRows = (db: Db, items: readonly NewCommand[], facts: CreateFacts): Promise<readonly Admission[]> => {
  const sqlTx: Db["sqlTx"] = (run) =>
    db.sqlTx((tx) => {
      tx.defer(tx.query(PLAN_ANEW));
      return run(tx);
    });
  return createCommandRows({ ...db, sqlTx }, items, facts);
};
