// Security: writes down what looks like an attack, raises alerts by rules, and blocks whom people and rules name.
import { contract, mayBlock, type SecurityAlert } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import type { PubSub } from "../../core/ports/pub-sub.ts";
import { type Blocks, INSTALLATION } from "../../core/ports/security.ts";
import { inRounds } from "../../core/rows/retention.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import { LOCK } from "../../core/statements.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import type { Members } from "../tenants/index.ts";
import { createSecurityAttention } from "./attention.ts";
import { countBlocked, pageOfBlocked } from "./block-rows.ts";
import { createBlockedSet } from "./blocked-set.ts";
import { type BlockBook, createBlocks, installationScope } from "./blocks.ts";
import { createEvaluate } from "./evaluate.ts";
import { deleteOldSecurityAlerts, deleteOldSecurityEvents, writeEvents } from "./event-rows.ts";
import { createRanks, type RanksDeps } from "./ranks.ts";
import { countSecurityRules, deleteSecurityRule, findSecurityRule, insertSecurityRule, isBuiltIn, listRules, writeRule } from "./rules.ts";
import { changeAlert, findSecurityAlert, pageOfEvents, pageOfSecurityAlerts, readMetrics } from "./store.ts";
import { type CountedWatch, createSecurityWatch } from "./watch.ts";

export { type CountedWatch, createSecurityWatch };

export interface SecurityDeps extends Pick<FeatureKit, "db" | "emit" | "audit"> {
  readonly clock: Clock;
  readonly bus: PubSub;
  readonly members: Members;
  readonly keys: RanksDeps["keys"];
  readonly counted: CountedWatch;
  readonly onError: (error: unknown) => void;
}

export interface SecurityFeature extends Feature<typeof contract.security> {
  readonly jobs: readonly Job[];
  readonly blocks: Blocks;
  /** Reads what is blocked before the node listens; to close it writes what was counted. */
  open(): Promise<{ close(): Promise<void> }>;
}

const FLUSH_EVERY_MS = 1_000;
const FLUSH_ROWS = 500;
const FORGET_EVERY_MS = 600_000;
const FORGET_ROWS = 1_000;
const MAX_RULES = 50;

export const createSecurity = (deps: SecurityDeps): SecurityFeature => {
  const { db, clock, counted } = deps;
  const set = createBlockedSet(clock);
  const blocks = createBlocks({ ...deps, set, ranks: createRanks(deps) });
  let full = 0;

  const flush = async (): Promise<boolean> => {
    const due = counted.due();
    const some = due.slice(0, FLUSH_ROWS);
    if (some.length > 0) {
      const totals = some.map(({ total }) => total);
      full += some.length - (await writeEvents(db, some));
      for (const [at, each] of some.entries()) each.written = totals[at] ?? each.written;
    }
    counted.sweep();
    return due.length > FLUSH_ROWS;
  };

  return {
    handlers: implement(contract.security, { ...createReads(deps), ...createAlertHandlers(deps), ...createRuleHandlers(deps), ...createBlockHandlers(blocks) }),
    jobs: [
      { name: "security.flush", everyMs: FLUSH_EVERY_MS, run: flush },
      createEvaluate({ ...deps, blocks }),
      { name: "security.forget", everyMs: FORGET_EVERY_MS, run: inRounds(FORGET_ROWS, (batch) => deleteOldSecurityEvents(db, batch)) },
      { name: "security.forget-alerts", everyMs: FORGET_EVERY_MS, run: inRounds(FORGET_ROWS, (batch) => deleteOldSecurityAlerts(db, batch)) },
      ...blocks.jobs,
    ],
    attention: createSecurityAttention(deps),
    gauges: [
      { name: "blocked_entities", help: "Addresses, users, devices and keys that this node refuses", read: () => set.size },
      {
        name: "security_signals",
        help: "What looked like an attack since the start of this node, by type",
        labels: ["type"],
        read: () => [...counted.counts].map(([type, count]) => [{ type }, count] as const),
      },
      {
        name: "security_signals_unwritten",
        help: "What looked like an attack and found no room, in memory or in the day's rows",
        read: () => counted.dropped + full,
      },
    ],
    blocks: set,
    open: async () => {
      const stop = await blocks.open();
      return {
        close: async () => {
          await stop();
          await flush();
        },
      };
    },
  };
};

type All = Handlers<typeof contract.security>;

const createReads = ({
  db,
  clock,
}: SecurityDeps): Pick<
  All,
  "listEvents" | "listAlerts" | "getAlert" | "metrics" | "listBlocked" | "installationEvents" | "installationAlerts" | "listBlockedEverywhere"
> => ({
  listEvents: ({ scope }, query) => pageOfEvents(db, scope, query),
  listAlerts: async ({ scope }, query) => pageWithActors(db, scope, await pageOfSecurityAlerts(db, scope, query)),
  getAlert: async ({ scope, fail }, { alertId }) => {
    const alert = await findSecurityAlert(db, scope, alertId);
    if (alert === null) throw fail("SECURITY_ALERT_NOT_FOUND", { alertId });
    return withActor(db, scope, alert);
  },
  metrics: async ({ scope }, { windowHours }) => {
    const now = clock.now();
    const [read, blockedEntities] = await Promise.all([readMetrics(db, scope, windowHours, now), countBlocked(db, scope, now)]);
    return { ...read, blockedEntities };
  },
  listBlocked: async ({ scope }, query) => pageWithActors(db, scope, await pageOfBlocked(db, scope, query, clock.now())),
  installationEvents: ({ scope }, query) => pageOfEvents(db, installationScope(scope), query),
  installationAlerts: ({ scope }, query) => pageOfSecurityAlerts(db, installationScope(scope), query),
  listBlockedEverywhere: ({ scope }, query) => pageOfBlocked(db, installationScope(scope), query, clock.now()),
});

interface Resolving {
  readonly alertId: string;
  readonly resolution: NonNullable<SecurityAlert["resolution"]>;
  readonly note: string | null;
}

const toEvent = ({ id: alertId, type, severity, ruleId, entityType, entityId }: SecurityAlert) => ({ alertId, type, severity, ruleId, entityType, entityId });

const createAlertHandlers = ({ clock, emit }: SecurityDeps): Pick<All, "acknowledge" | "acknowledgeForInstallation" | "resolve" | "resolveForInstallation"> => {
  const { alertAcknowledged, alertResolved } = contract.security.events;
  const refusal = async (tx: Tx, scope: SystemScope, alertId: string, to: SecurityAlert["status"]): Promise<AppError> => {
    const alert = await findSecurityAlert(tx, scope, alertId);
    if (alert === null) return new AppError("SECURITY_ALERT_NOT_FOUND", { details: { alertId } });
    const allowed = alert.status === "open" ? ["acknowledged", "resolved"] : alert.status === "acknowledged" ? ["resolved"] : [];
    return new AppError("INVALID_STATE_TRANSITION", { details: { from: alert.status, to, allowed } });
  };
  const acknowledge = async (tx: Tx, scope: SystemScope, alertId: string): Promise<SecurityAlert> => {
    const change = { status: "acknowledged", acknowledgedAt: clock.now(), acknowledgedBy: actorOf(scope.principal ?? null) } as const;
    const alert = await changeAlert(tx, scope, { alertId, from: ["open"] }, change);
    if (alert === null) throw await refusal(tx, scope, alertId, "acknowledged");
    if (scope.tenantId !== INSTALLATION) await emit(tx, [happened(scope, alertAcknowledged, alertId, toEvent(alert))]);
    return alert;
  };
  const resolve = async (tx: Tx, scope: SystemScope, { alertId, resolution, note }: Resolving): Promise<SecurityAlert> => {
    const change = { status: "resolved", resolvedAt: clock.now(), resolvedBy: actorOf(scope.principal ?? null), resolution, note } as const;
    const alert = await changeAlert(tx, scope, { alertId, from: ["open", "acknowledged"] }, change);
    if (alert === null) throw await refusal(tx, scope, alertId, "resolved");
    if (scope.tenantId !== INSTALLATION) await emit(tx, [happened(scope, alertResolved, alertId, { ...toEvent(alert), resolution })]);
    return alert;
  };
  return {
    acknowledge: ({ scope, commit }, { alertId }) => commit((tx) => acknowledge(tx, scope, alertId)),
    acknowledgeForInstallation: ({ scope, commit }, { alertId }) => commit((tx) => acknowledge(tx, installationScope(scope), alertId)),
    resolve: ({ scope, commit }, input) => commit((tx) => resolve(tx, scope, input)),
    resolveForInstallation: ({ scope, commit }, input) => commit((tx) => resolve(tx, installationScope(scope), input)),
  };
};

const onlyAddresses = (): AppError => {
  const message = "only `ip` can be blocked for this type: anybody can cause it in another's name";
  return new AppError("VALIDATION_FAILED", { details: { issues: [{ path: "actions.block.entityType", code: "custom", message }] } });
};

const createRuleHandlers = ({ db }: SecurityDeps): Pick<All, "listRules" | "getRule" | "createRule" | "updateRule" | "removeRule"> => {
  const notFound = (ruleId: string): AppError => new AppError("SECURITY_RULE_NOT_FOUND", { details: { ruleId } });
  const lockName = ({ tenantId }: SystemScope): string => `security rules of ${tenantId}`;
  return {
    listRules: async ({ scope }) => ({ items: [...(await listRules(db, scope))] }),
    getRule: async ({ scope }, { securityRuleId: ruleId }) => {
      const rule = await findSecurityRule(db, scope, ruleId);
      if (rule === null) throw notFound(ruleId);
      return rule;
    },
    createRule: ({ scope, fail, commit }, rule) =>
      commit(async (tx) => {
        await tx.query(LOCK, [lockName(scope)]);
        if ((await countSecurityRules(tx, scope)) >= MAX_RULES) throw fail("SECURITY_LIMIT_REACHED", { limit: MAX_RULES });
        return insertSecurityRule(tx, scope, newId("srl"), rule);
      }),
    updateRule: ({ scope, fail, commit }, { securityRuleId: ruleId, version, ...change }) =>
      commit(async (tx) => {
        await tx.query(LOCK, [lockName(scope)]);
        const before = await findSecurityRule(tx, scope, ruleId);
        if (before === null) throw notFound(ruleId);
        if (version !== undefined && version !== before.version) throw fail("VERSION_CONFLICT", { currentVersion: before.version });
        const rule = { ...before, ...Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) };
        if (!mayBlock(rule.type, rule.actions)) throw onlyAddresses();
        return writeRule(tx, scope, rule);
      }),
    removeRule: ({ scope, fail, commit }, { securityRuleId: ruleId }) =>
      commit(async (tx) => {
        if (isBuiltIn(ruleId)) throw fail("SECURITY_RULE_BUILT_IN", { ruleId });
        if (!(await deleteSecurityRule(tx, scope, ruleId))) throw notFound(ruleId);
        return null;
      }),
  };
};

const createBlockHandlers = ({ block, unblock }: BlockBook): Pick<All, "block" | "unblock" | "blockEverywhere" | "unblockEverywhere"> => ({
  block: ({ scope, commit }, wanted) => commit((tx, afterwards) => block(tx, scope, { caller: scope, wanted, afterwards })),
  unblock: ({ scope, commit }, { blockedEntityId: id }) => commit((tx, afterwards) => unblock(tx, scope, { id, afterwards })),
  blockEverywhere: ({ scope, commit }, wanted) => commit((tx, afterwards) => block(tx, installationScope(scope), { caller: scope, wanted, afterwards })),
  unblockEverywhere: ({ scope, commit }, { blockedEntityId: id }) => commit((tx, afterwards) => unblock(tx, installationScope(scope), { id, afterwards })),
});
