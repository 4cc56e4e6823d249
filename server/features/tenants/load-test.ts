// Load tests: a tenant's administrator lets the gateway call its own reads, and sees how fast they are answered.
import { setMaxListeners } from "node:events";
import { contract, type LoadTestResults } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import type { Flags } from "../../core/people/flags.ts";
import { userOf } from "../../core/people/user-of.ts";
import type { LoadCaller, LoadCalls } from "../../core/ports/load-calls.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import { createLoadRun, createPace, type LoadPlan } from "./load-test-run.ts";
import { askToCancel, beginLoadTest, endLoadTest, findLoadTest, findPastDeadline, notStarted, writeLoadTest } from "./store/load-tests.ts";

export interface LoadTestDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly nodeId: string;
  readonly flags: () => Flags;
  /** Known once the transports exist. */
  readonly loadCalls: () => LoadCalls;
  readonly onError: (error: unknown) => void;
}

/** All tests of one node together. */
const CALLS_PER_SECOND = 200;
const REPORT_MS = 1_000;
/** A run that has not ended by then has lost its node. */
const GRACE_SECONDS = 30;
const LOST_EVERY_MS = 15_000;
const LOST_ROWS = 100;

const NOTHING = { progress: 0, requests: 0, failed: 0, requestsPerSecond: 0, latencyMs: { p50: 0, p95: 0, p99: 0, max: 0 }, errors: {}, endpoints: [] };
const AT_START: LoadTestResults = { outcome: "running", ...NOTHING };

type LoadTestHandlers = Pick<Handlers<typeof contract.tenants>, "loadTest" | "startLoadTest" | "cancelLoadTest">;

export const createLoadTests = (deps: LoadTestDeps) => {
  const runner = createRunner(deps);
  const job: Job = {
    name: "tenants.load-tests",
    everyMs: LOST_EVERY_MS,
    run: async (signal) => {
      runner.stopWith(signal);
      for (const { tenantId, loadTestId, results } of await findPastDeadline(deps.db, deps.clock.now(), LOST_ROWS))
        await runner.end({ tenantId }, loadTestId, { ...(results ?? AT_START), outcome: "failed", reason: "the node that ran it has ended" });
    },
  };
  return { handlers: createHandlers(deps, runner), job };
};

const createHandlers = ({ db, clock, flags, loadCalls, nodeId }: LoadTestDeps, runner: Runner): LoadTestHandlers => ({
  loadTest: async ({ scope, fail }, { tenantId }) => {
    if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
    return (await findLoadTest(db, scope))?.shown ?? notStarted(scope);
  },

  startLoadTest: async ({ scope, fail, commit }, { tenantId, duration, concurrency, endpoints }) => {
    if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
    if (!(await flags().isOn("loadTests", tenantId))) throw fail("FORBIDDEN", { reason: "feature_disabled", feature: "loadTests" });
    const planned = plannedCalls(loadCalls(), endpoints);
    const caller = callerOf(scope);
    const loadTestId = newId("ltr");
    return commit(async (tx, afterwards) => {
      const row = { loadTestId, duration, concurrency, endpoints, startedBy: actorOf(scope.principal), nodeId, results: AT_START, startedAt: clock.now() };
      if (!(await beginLoadTest(tx, scope, row, GRACE_SECONDS))) throw fail("LOAD_TEST_RUNNING", { tenantId, retryHint: "after_state_change" });
      afterwards(() => runner.start(caller, loadTestId, { durationMs: duration * 1_000, concurrency, endpoints: planned }));
      return (await findLoadTest(tx, scope))?.shown ?? notStarted(scope);
    });
  },

  cancelLoadTest: ({ scope, fail, commit }, { tenantId }) =>
    commit(async (tx, afterwards) => {
      if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
      const asked = await askToCancel(tx, scope, clock.now());
      const test = await findLoadTest(tx, scope);
      if (!asked || test === null) throw fail("INVALID_STATE_TRANSITION", { from: test?.shown.status ?? "not_started", to: "completed", allowed: [] });
      // The node that runs it finds the row within a second.
      afterwards(() => runner.cancel(test.loadTestId));
      return test.shown;
    }),
});

const callerOf = (scope: TenantScope): LoadCaller => {
  const { userId, email } = userOf(scope);
  return { tenantId: scope.tenantId, userId, email };
};

const PREFIXED = /^\/(?:api\/)?v1(?:[/?]|$)/;

const plannedCalls = (calls: LoadCalls, endpoints: readonly string[]): LoadPlan["endpoints"] => {
  const planned = endpoints.map((endpoint) => {
    const target = PREFIXED.test(endpoint) ? endpoint : `/v1${endpoint}`;
    return { endpoint, target, operation: calls.operationOf(target) };
  });
  const issues = planned.flatMap(({ operation }, index) =>
    operation === null ? [{ path: `endpoints.${index}`, code: "custom", message: "is no GET operation that a load test may call" }] : [],
  );
  if (issues.length > 0) throw new AppError("VALIDATION_FAILED", { details: { issues } });
  return planned.map(({ operation, ...same }) => ({ ...same, operation: operation ?? "" }));
};

type Runner = ReturnType<typeof createRunner>;
/** Why a run ended before its time. */
type Stop = "canceled" | "unauthorized" | "failed";

const createRunner = ({ db, clock, emit, loadCalls, onError }: LoadTestDeps) => {
  const turn = createPace(CALLS_PER_SECOND, clock);
  const running = new Map<string, AbortController>();
  let node: AbortSignal | null = null;

  /** Tells of the end once, whoever comes first: the run, or the job that finds it lost. */
  const end = async (scope: SystemScope, loadTestId: string, results: LoadTestResults): Promise<void> => {
    const finishedAt = clock.now();
    const finished = { ...results, finishedAt: finishedAt.toISOString() };
    await db.tx(async (tx) => {
      if (!(await endLoadTest(tx, scope, loadTestId, { results: finished, finishedAt }))) return;
      const { outcome, requests, failed } = finished;
      const { loadTestCompleted } = contract.tenants.events;
      await emit(tx, [happened(scope, loadTestCompleted, scope.tenantId, { tenantId: scope.tenantId, outcome, requests, failed })]);
    });
  };

  const conduct = async (
    caller: LoadCaller,
    loadTestId: string,
    { plan, stop }: { readonly plan: LoadPlan; readonly stop: AbortController },
  ): Promise<void> => {
    const scope = { tenantId: caller.tenantId };
    const calls = loadCalls();
    const test = createLoadRun(plan, { clock, turn, get: (target) => calls.get(caller, target) });
    /** The starter may have lost the right to run it, as the operation itself judges it. */
    const check = async (): Promise<void> => {
      const { status } = await calls.get(caller, `/v1/tenants/${caller.tenantId}/load-test`);
      if (status === 401 || status === 403) stop.abort("unauthorized" satisfies Stop);
      else if (!(await writeLoadTest(db, scope, loadTestId, { outcome: "running", ...test.measured() }))) stop.abort("canceled" satisfies Stop);
    };
    const timer = setInterval(() => void check().catch(onError), REPORT_MS);
    try {
      await test.run(stop.signal);
    } finally {
      clearInterval(timer);
    }
    // A node that stops has no database any more; the job of another ends the test.
    if (node?.aborted === true) return;
    const outcome = stop.signal.aborted ? (stop.signal.reason as Stop) : "finished"; // as: only this file aborts it
    await end(scope, loadTestId, { ...test.measured(), outcome });
  };

  return {
    end,
    start: (caller: LoadCaller, loadTestId: string, plan: LoadPlan): void => {
      const stop = new AbortController();
      setMaxListeners(plan.concurrency + 1, stop.signal);
      running.set(loadTestId, stop);
      void conduct(caller, loadTestId, { plan, stop })
        .catch(onError)
        .finally(() => running.delete(loadTestId));
    },
    cancel: (loadTestId: string): void => running.get(loadTestId)?.abort("canceled" satisfies Stop),
    /** Ends all runs when the node stops. */
    stopWith: (signal: AbortSignal): void => {
      if (node === signal) return;
      node = signal;
      signal.addEventListener("abort", () => {
        for (const stop of running.values()) stop.abort("failed" satisfies Stop);
      });
    },
  };
};
