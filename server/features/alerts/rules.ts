// The handlers of rules.
import { type AlertRule, type AlertScope, contract, METRICS_WITH_HISTORY } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { clearProblem, clearThresholdOf } from "./model.ts";
import { preview } from "./preview.ts";
import { findKnownChannels } from "./store/channels.ts";
import { deleteRule, findRule, insertRule, pageOfRules, updateRule } from "./store/rules.ts";

export interface RulesDeps extends Pick<FeatureKit, "db" | "plan"> {
  /** The devices among these that the tenant has. */
  readonly knownDevices: (tx: Clients, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Throws FLEET_NOT_FOUND. */
  readonly holdFleets: (tx: Tx, scope: SystemScope, fleetIds: readonly string[]) => Promise<void>;
  /** The rules on events have changed. */
  readonly eventRulesChanged: () => void;
}

const refused = (path: string, message: string): AppError => new AppError("VALIDATION_FAILED", { details: { issues: [{ path, code: "custom", message }] } });
const checkClear = (rule: Pick<AlertRule, "operator" | "threshold" | "clearThreshold">): void => {
  const problem = clearProblem(rule);
  if (problem !== null) throw refused("clearThreshold", problem);
};

/** What webhooks tell of too, but for alerts themselves: a rule on them would feed itself. */
const EVENT_TYPES: ReadonlySet<string> = new Set(
  Object.values(contract).flatMap(({ events }) =>
    Object.values<{ type: string; durable: boolean }>(events).flatMap(({ type, durable }) => (durable && !type.startsWith("alert.") ? [type] : [])),
  ),
);

const checkEvent = ({ metric, eventType }: { readonly metric: string; readonly eventType?: string | undefined }): string | null => {
  if (metric !== "event") {
    if (eventType !== undefined) throw refused("eventType", "is only for the metric event");
    return null;
  }
  if (eventType === undefined) throw refused("eventType", "is needed for the metric event");
  if (!EVENT_TYPES.has(eventType)) throw new AppError("EVENT_TYPE_UNKNOWN", { details: { unknown: [eventType] } });
  return eventType;
};

type Names = "listRules" | "getRule" | "createRule" | "updateRule" | "removeRule" | "preview" | "testRule";

type PastMetric = (typeof METRICS_WITH_HISTORY)[number];
const hasHistory = (metric: AlertRule["metric"]): metric is PastMetric => (METRICS_WITH_HISTORY as readonly string[]).includes(metric);

export const createRuleHandlers = ({ db, plan, knownDevices, holdFleets, eventRulesChanged }: RulesDeps): Pick<Handlers<typeof contract.alerts>, Names> => {
  const checkScope = async (tx: Tx, scope: SystemScope, devices: AlertScope | null): Promise<void> => {
    if (devices === null) return;
    const known = devices.deviceIds.length === 0 ? new Set<string>() : await knownDevices(tx, scope, devices.deviceIds);
    const deviceId = devices.deviceIds.find((each) => !known.has(each));
    if (deviceId !== undefined) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
    if (devices.fleetIds.length > 0) await holdFleets(tx, scope, devices.fleetIds);
  };
  const checkChannels = async (tx: Tx, scope: SystemScope, channelIds: readonly string[]): Promise<void> => {
    if (channelIds.length === 0) return;
    const known = await findKnownChannels(tx, scope, channelIds);
    const channelId = channelIds.find((each) => !known.has(each));
    if (channelId !== undefined) throw new AppError("CHANNEL_NOT_FOUND", { details: { channelId } });
  };
  return {
    listRules: async ({ scope }, query) => pageWithActors(db, scope, await pageOfRules(db, scope, query)),
    getRule: async ({ scope, fail }, { ruleId }) => {
      const rule = await findRule(db, scope, ruleId);
      if (rule === null) throw fail("ALERT_RULE_NOT_FOUND", { ruleId });
      return withActor(db, scope, rule);
    },
    createRule: ({ scope, commit }, { clearThreshold: given, ...rule }) => {
      const eventType = checkEvent(rule);
      const clearThreshold = given ?? clearThresholdOf(rule);
      checkClear({ ...rule, clearThreshold });
      return commit(async (tx, afterwards) => {
        await plan.require(tx, scope, "alertRules", 1);
        await checkScope(tx, scope, rule.scope);
        await checkChannels(tx, scope, rule.channelIds);
        if (eventType !== null) afterwards(eventRulesChanged);
        return insertRule(tx, scope, { ...rule, ruleId: newId("arl"), clearThreshold, eventType, createdBy: actorOf(scope.principal) });
      });
    },
    updateRule: ({ scope, fail, commit }, { ruleId, ...change }) =>
      commit(async (tx, afterwards) => {
        const before = await findRule(tx, scope, ruleId);
        if (before === null) throw fail("ALERT_RULE_NOT_FOUND", { ruleId });
        const { operator = before.operator, threshold = before.threshold } = change;
        const isOther = change.operator !== undefined || change.threshold !== undefined;
        const clearThreshold = change.clearThreshold ?? (isOther ? clearThresholdOf({ ...before, operator, threshold }) : before.clearThreshold);
        checkClear({ operator, threshold, clearThreshold });
        await checkScope(tx, scope, change.scope ?? null);
        await checkChannels(tx, scope, change.channelIds ?? []);
        const rule = await updateRule(tx, scope, ruleId, { ...change, clearThreshold });
        const now = rule ?? (await findRule(tx, scope, ruleId));
        if (now === null) throw fail("ALERT_RULE_NOT_FOUND", { ruleId });
        if (rule === null) throw fail("VERSION_CONFLICT", { currentVersion: now.version });
        if (rule.eventType !== null) afterwards(eventRulesChanged);
        return rule;
      }),
    removeRule: ({ scope, fail, commit }, { ruleId }) =>
      commit(async (tx) => {
        if (!(await deleteRule(tx, scope, ruleId))) throw fail("ALERT_RULE_NOT_FOUND", { ruleId });
        return null;
      }),
    testRule: async ({ scope, fail }, { ruleId, hours }) => {
      const rule = await findRule(db, scope, ruleId);
      if (rule === null) throw fail("ALERT_RULE_NOT_FOUND", { ruleId });
      const { metric } = rule;
      if (!hasHistory(metric)) throw refused("ruleId", `the past of ${metric} is not stored`);
      return preview(db, scope, { ...rule, metric, hours });
    },
    preview: async ({ scope }, input) => {
      const rule = { ...input, clearThreshold: input.clearThreshold ?? clearThresholdOf(input) };
      checkClear(rule);
      await db.tx((tx) => checkScope(tx, scope, rule.scope));
      return preview(db, scope, rule);
    },
  };
};
