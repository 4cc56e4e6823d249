// The evaluation: one node at a time looks at all rules of all tenants. Its number of statements depends on the kinds of metrics, never on devices, rules or tenants.

import type { Tx } from "../../core/database.ts";
import { becomeLeader } from "../../core/leader-election.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import { firstRules } from "./first-rules.ts";
import { type Clearing, createIncidents, type Firing, type IncidentsDeps } from "./incidents.ts";
import { step, type TargetState } from "./model.ts";
import { queueDue } from "./notify.ts";
import { applySilences } from "./silencing.ts";
import { touchActive } from "./store/incidents.ts";
import { findMetrics, findOrphans, forgetCalm, type Observation, type Orphan, observeMetric, type StateChange, writeStates } from "./store/observe.ts";
import { insertDefaults } from "./store/rules.ts";

const EVERY_MS = 15_000;
/** Targets of one metric in one transaction. */
const BATCH = 5_000;
const DEFAULTS_BATCH = 500;

type Row = Observation | Orphan;
const stateOf = ({ phase, since, changes, changes_since, flapping }: Row): TargetState | null =>
  phase === null || since === null
    ? null
    : { phase, sinceMs: since.getTime(), changes: changes ?? 0, changesSinceMs: changes_since?.getTime() ?? 0, flapping: flapping ?? false };

const changeOf = ({ tenant_id, rule_id, target_id, at }: Row, state: TargetState | null, alert_id: string | null): StateChange => ({
  tenant_id,
  rule_id,
  target_id,
  alert_id,
  phase: state?.phase ?? null,
  since: new Date(state?.sinceMs ?? at.getTime()),
  changes: state?.changes ?? 0,
  changes_since: new Date(state?.changesSinceMs ?? at.getTime()),
  flapping: state?.flapping ?? false,
});

/** What a rule no longer looks at is over at once, flapping or not. */
const endOrphan = (orphan: Orphan): TargetState | null => {
  const before = stateOf(orphan);
  return before === null || before.phase === "pending" ? null : { ...before, phase: "calm", sinceMs: orphan.at.getTime(), flapping: false };
};

export interface EvaluationDeps extends IncidentsDeps {
  readonly db: Db;
}

export const createEvaluation = (deps: EvaluationDeps) => {
  const apply = createIncidents(deps);

  const evaluate = async (tx: Tx): Promise<boolean> => {
    const seen: Observation[] = [];
    let isFull = false;
    for (const metric of await findMetrics(tx)) {
      const found = await observeMetric(tx, metric, BATCH);
      seen.push(...found);
      isFull ||= found.length === BATCH;
    }
    const orphans = await findOrphans(tx, BATCH);
    const judged = seen.map((each) => {
      const timing = { forSeconds: each.for_seconds, clearForSeconds: each.clear_for_seconds };
      return { each, ...step(stateOf(each), each, timing, each.at.getTime()) };
    });
    const fired = judged.filter(({ turn }) => turn === "fires");
    const firings: Firing[] = fired.map(({ each, state }) => ({ seen: each, flapping: state?.flapping ?? false }));
    const cleared: Clearing[] = [...judged.filter(({ turn }) => turn === "clears").map(({ each }) => each), ...orphans];
    const alertIds = new Map((await apply(tx, firings, cleared)).map((alertId, at) => [fired[at]?.each, alertId]));
    await writeStates(tx, [
      ...judged.map(({ each, state }) => changeOf(each, state, alertIds.get(each) ?? each.alert_id)),
      ...orphans.map((each) => changeOf(each, endOrphan(each), each.alert_id)),
    ]);
    return isFull || orphans.length === BATCH;
  };

  const run = (): Promise<boolean> =>
    deps.db.tx(async (tx) => {
      if (!(await becomeLeader(tx, "alertEvaluation"))) return false;
      const hasMoreTenants = await insertDefaults(tx, DEFAULTS_BATCH, firstRules);
      const hasMore = await evaluate(tx);
      await applySilences(tx, null);
      const hasMoreDue = await queueDue(tx, deps.portalUrl());
      await touchActive(tx);
      await forgetCalm(tx);
      return hasMoreTenants || hasMore || hasMoreDue;
    });
  const job: Job = { name: "alerts.evaluate", everyMs: EVERY_MS, run };
  return { job, run };
};
