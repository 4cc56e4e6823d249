// Rows of alert rules.
import { Prisma } from "../../../../prisma/generated/client.ts";
import { AlertRule, AlertScope, type Page } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given, type RowOf, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

const toRule = (row: RowOf<typeof AlertRule>): AlertRule => recordOf(AlertRule, { ...row, scope: row.scope === null ? null : AlertScope.parse(row.scope) });

const list = createListing("alertRules", { createdAt: { kind: "time" }, name: { kind: "text" } }, { column: "ruleId", kind: "text" });
type RulesQuery = Parameters<typeof list>[0] & Partial<Pick<AlertRule, "enabled" | "metric">>;

export const pageOfRules = (
  db: Clients,
  scope: SystemScope,
  query: Omit<RulesQuery, "enabled" | "metric"> & { readonly enabled?: boolean | undefined; readonly metric?: string | undefined },
): Promise<Page<AlertRule>> => {
  const { alertRule } = db.for(scope);
  const { enabled, metric } = query;
  const where = given({ enabled, metric });
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => alertRule.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => alertRule.count({ where }),
    record: toRule,
  });
};

/** Whether a rule looks at that metric, enabled or not. */
export const hasRuleOn = async (db: Clients, scope: SystemScope, metric: string): Promise<boolean> =>
  (await db.for(scope).alertRule.findFirst({ where: { metric }, select: { ruleId: true } })) !== null;

/** For the plan. */
export const countRules = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).alertRule.count();

export const findRule = async (db: Clients, scope: SystemScope, ruleId: string): Promise<AlertRule | null> => {
  const row = await db.for(scope).alertRule.findFirst({ where: { ruleId } });
  return row === null ? null : toRule(row);
};

export type NewRule = Omit<AlertRule, "tenantId" | "version" | "createdAt" | "updatedAt">;
const stored = (rule: NewRule) => ({ ...rule, scope: rule.scope ?? Prisma.DbNull });
export const insertRule = async (db: Clients, scope: SystemScope, rule: NewRule): Promise<AlertRule> =>
  toRule(await db.for(scope).alertRule.create({ data: stored(rule) }));

type Mutable = Omit<NewRule, "ruleId" | "metric" | "eventType" | "createdBy">;
export type RuleChange = { readonly [K in keyof Mutable]?: Mutable[K] | undefined } & { readonly version?: number | undefined };

/** Null when the version has moved on or the rule is gone. */
export const updateRule = async (
  db: Clients,
  scope: SystemScope,
  ruleId: string,
  { version, scope: devices, ...change }: RuleChange,
): Promise<AlertRule | null> => {
  const where = { ruleId, ...given({ version }) };
  const data = { ...given(change), ...(devices === undefined ? {} : { scope: devices ?? Prisma.DbNull }), version: { increment: 1 } };
  const [row] = await db.for(scope).alertRule.updateManyAndReturn({ where, data });
  return row === undefined ? null : toRule(row);
};

/** False when it is gone. */
export const deleteRule = async (db: Clients, scope: SystemScope, ruleId: string): Promise<boolean> =>
  (await db.for(scope).alertRule.deleteMany({ where: { ruleId } })).count === 1;

const TAKE_OUT = statement(
  "alerts.takeOutChannel",
  "update alert_rules set channel_ids = array_remove(channel_ids, $2) where tenant_id = $1 and channel_ids @> array[$2::text]",
);
export const takeChannelOut = (tx: SqlTx, { tenantId }: SystemScope, channelId: string): Promise<unknown> => tx.query(TAKE_OUT, [tenantId, channelId]);

/** The types of events that some rule of the tenant waits for. */
export const findEventTypes = async (db: Clients): Promise<readonly { readonly tenantId: string; readonly type: string }[]> => {
  const rows = await db.system.alertRule.findMany({ where: { enabled: true, metric: "event" }, select: { tenantId: true, eventType: true } });
  return rows.flatMap(({ tenantId, eventType }) => (eventType === null ? [] : [{ tenantId, type: eventType }]));
};

const WITHOUT_DEFAULTS = statement<{ readonly tenant_id: string }>(
  "alerts.withoutDefaults",
  `insert into alert_tenants (tenant_id) select t.tenant_id from tenants t where t.status = 'active' and not exists (select from alert_tenants a where a.tenant_id = t.tenant_id)
    limit $1 on conflict do nothing returning tenant_id`,
);
/** Gives the next tenants that never had any their first rules, except those whose names they have used meanwhile, as by an import. */
export const insertDefaults = async (tx: SqlTx & Clients, limit: number, rulesFor: () => readonly NewRule[]): Promise<boolean> => {
  const tenants = (await tx.query(WITHOUT_DEFAULTS, [limit])).map(({ tenant_id }) => tenant_id);
  if (tenants.length === 0) return false;
  const rules = tenants.flatMap((tenantId) => rulesFor().map((rule) => ({ tenantId, ...stored(rule) })));
  const sameNames = { tenantId: { in: tenants }, name: { in: rulesFor().map(({ name }) => name) } };
  const keyOf = ({ tenantId, name }: { readonly tenantId: string; readonly name: string }): string => `${tenantId} ${name}`;
  const used = new Set((await tx.system.alertRule.findMany({ where: sameNames, select: { tenantId: true, name: true } })).map(keyOf));
  await tx.system.alertRule.createMany({ data: rules.filter((rule) => !used.has(keyOf(rule))) });
  return tenants.length === limit;
};
