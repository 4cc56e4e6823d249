// Security rules: one built-in rule for each type of event, which a tenant may change or disable, and the tenant's own.
import {
  capitalized,
  factsOf,
  type Id,
  SECURITY_EVENT_TYPES,
  SECURITY_EVENTS,
  SecurityActions,
  SecurityConditions,
  type SecurityEventType,
  SecurityRule,
} from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import { type RowOf, recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";

export type RuleId = Id<"srl">;

/** The same in every tenant, and as long as a generated one. */
const builtInId = (type: SecurityEventType): RuleId => {
  const words = type.split(/[._]/).map(capitalized);
  return `srl_B0${words.join("").padEnd(22, "0")}`;
};

const builtInRule = (type: SecurityEventType): SecurityRule => {
  const { count, windowSeconds, severity } = factsOf(type);
  return {
    id: builtInId(type),
    name: SECURITY_EVENTS[type].meaning,
    type,
    enabled: true,
    conditions: { count, windowSeconds, severity },
    actions: { alert: true, block: null },
    builtIn: true,
    version: 1,
    createdAt: null,
    updatedAt: null,
  };
};
const BUILT_IN: ReadonlyMap<string, SecurityRule> = new Map(SECURITY_EVENT_TYPES.map((type) => [builtInId(type), builtInRule(type)]));
export const isBuiltIn = (ruleId: string): boolean => BUILT_IN.has(ruleId);

type Row = Omit<RowOf<typeof SecurityRule>, "id" | "builtIn"> & { readonly securityRuleId: string };
const toRule = ({ securityRuleId: ruleId, conditions, actions, ...row }: Row): SecurityRule =>
  recordOf(SecurityRule, {
    ...row,
    id: ruleId,
    builtIn: isBuiltIn(ruleId),
    conditions: SecurityConditions.parse(conditions),
    actions: SecurityActions.parse(actions),
  });

/** The built-in ones first, then the tenant's own, oldest first. */
export const listRules = async (db: Clients, scope: SystemScope): Promise<readonly SecurityRule[]> => {
  const stored = (await db.for(scope).securityRule.findMany({ orderBy: [{ createdAt: "asc" }, { securityRuleId: "asc" }] })).map(toRule);
  const changed = new Map(stored.map((rule) => [rule.id as string, rule]));
  return [...[...BUILT_IN.values()].map((rule) => changed.get(rule.id) ?? rule), ...stored.filter(({ builtIn }) => !builtIn)];
};

export const findSecurityRule = async (db: Clients, scope: SystemScope, ruleId: string): Promise<SecurityRule | null> => {
  const row = await db.for(scope).securityRule.findFirst({ where: { securityRuleId: ruleId } });
  return row === null ? (BUILT_IN.get(ruleId) ?? null) : toRule(row);
};

export const countSecurityRules = async (db: Clients, scope: SystemScope): Promise<number> =>
  db.for(scope).securityRule.count({ where: { securityRuleId: { notIn: [...BUILT_IN.keys()] } } });

type NewRule = Pick<SecurityRule, "name" | "type" | "enabled" | "conditions" | "actions">;
export const insertSecurityRule = async (db: Clients, scope: SystemScope, ruleId: string, rule: NewRule): Promise<SecurityRule> =>
  toRule(await db.for(scope).securityRule.create({ data: { ...rule, securityRuleId: ruleId } }));

/** A built-in rule becomes a row with its first change. */
export const writeRule = async (db: Clients, scope: SystemScope, rule: SecurityRule): Promise<SecurityRule> => {
  const { id: securityRuleId, name, type, enabled, conditions, actions } = rule;
  const change = { name, type, enabled, conditions, actions, version: rule.version + 1 };
  const { securityRule } = db.for(scope);
  return toRule(await securityRule.upsert({ where: { tenantId_securityRuleId: { securityRuleId } }, create: { ...change, securityRuleId }, update: change }));
};

export const deleteSecurityRule = async (db: Clients, scope: SystemScope, ruleId: string): Promise<boolean> =>
  (await db.for(scope).securityRule.deleteMany({ where: { securityRuleId: ruleId } })).count === 1;
