// What of the tenants has waited for longer than it should: deletions, the roll-up of metrics, and load tests whose node is gone.
import { type Clock, secondsFromNow } from "../../core/clock.ts";
import type { FindStuck, Stuck } from "../../core/people/stuck.ts";
import type { Db } from "../../platform/database/db.ts";
import { findOverdueDeletions } from "./store/any-tenant.ts";
import { findLostLoadTests, findMetricsBehind } from "./store/stuck.ts";

// The purge runs every minute and needs some rounds for a large tenant.
const DELETION_SECONDS = 3_600;
/** How many of its steps the roll-up may lag. */
const METRIC_STEPS = 5;
// A job ends lost tests within a minute.
const LOAD_TEST_SECONDS = 300;

export const createStuck =
  ({ db, clock }: { readonly db: Db; readonly clock: Clock }): FindStuck =>
  async (limit) => {
    const now = clock.now();
    const [deletions, metrics, tests] = await Promise.all([
      findOverdueDeletions(db, secondsFromNow(-DELETION_SECONDS, now), limit),
      findMetricsBehind(db, now, METRIC_STEPS),
      findLostLoadTests(db, secondsFromNow(-LOAD_TEST_SECONDS, now), limit),
    ]);
    return [
      ...deletions.map(
        ({ tenantId, deleteAfter, status }): Stuck => ({
          kind: "deletion_overdue",
          tenantId,
          id: tenantId,
          since: deleteAfter,
          reason: status === "deleted" ? "its rows are still being deleted" : "the job tenants.purge has not ended it",
          whatToDo: "Look at the job tenants.purge and run it.",
        }),
      ),
      ...metrics.map(
        ({ stepSeconds, at }): Stuck => ({
          kind: "metrics_behind",
          tenantId: null,
          id: `step ${stepSeconds}`,
          since: at,
          reason: "the roll-up of metrics lags",
          whatToDo: "Look at the job metrics.roll-up and run it. Buckets that it has missed stay empty.",
        }),
      ),
      ...tests.map(
        ({ tenantId, nodeId, since }): Stuck => ({
          kind: "load_test_lost",
          tenantId,
          id: tenantId,
          since,
          reason: `node ${nodeId} has not ended the load test`,
          whatToDo: "Look at the job tenants.load-tests and run it.",
        }),
      ),
    ];
  };
