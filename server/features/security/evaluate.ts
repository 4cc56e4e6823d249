// Applies the rules to events that none has seen: one tenant per transaction, so any number of nodes share the work and a crash loses nothing.
import { contract, type SecurityRule, type TenantId } from "../../../protocol/index.ts";
import { type Clock, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { AuditTrail } from "../../core/ports/audit.ts";
import { INSTALLATION } from "../../core/ports/security.ts";
import type { SystemScope } from "../../core/scope.ts";
import { LOCK } from "../../core/statements.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { NewBlock } from "./block-rows.ts";
import type { BlockBook } from "./blocks.ts";
import { sumSince, type TakenEvent, takePending } from "./event-rows.ts";
import { listRules } from "./rules.ts";
import { countUnresolved, findLastAlert, insertAlert, renewAlert } from "./store.ts";

export interface EvaluateDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly audit: AuditTrail;
  readonly blocks: Pick<BlockBook, "blockByRule" | "spread">;
}

const EVERY_MS = 1_000;
const BATCH = 200;
/** What is about more subjects than this is one attack, and more alerts tell nobody more. */
const MAX_OPEN_PER_RULE = 200;

type Subject = TakenEvent;

/** The last event of each subject: its rows of several minutes count as one. */
const subjectsOf = (events: readonly TakenEvent[]): readonly Subject[] => {
  const last = new Map<string, TakenEvent>();
  for (const event of [...events].sort((a, b) => a.lastAt.getTime() - b.lastAt.getTime()))
    last.set(`${event.type} ${event.entityType} ${event.entityId}`, event);
  return [...last.values()];
};

/** The block that the rule asks for; null if the event has no such thing. */
const blockOf = ({ id, name, actions }: SecurityRule, { entityType, entityId, ipAddress }: Subject, now: Date): NewBlock | null => {
  if (actions.block === null) return null;
  const { entityType: wanted, seconds } = actions.block;
  const value = wanted === "ip" ? ipAddress : entityType === wanted ? entityId : null;
  if (value === null || value === "") return null;
  return { entityType: wanted, entityValue: value, reason: name, createdBy: id, expiresAt: secondsFromNow(seconds, now) };
};

export const createEvaluate = ({ db, clock, emit, audit, blocks }: EvaluateDeps): Job => {
  const { alertOpened } = contract.security.events;

  const raise = async (tx: Tx, scope: SystemScope, rule: SecurityRule, at: { subject: Subject; count: number; previous: string | null }): Promise<void> => {
    const { entityType, entityId, lastAt } = at.subject;
    if ((await countUnresolved(tx, scope, rule.id)) >= MAX_OPEN_PER_RULE) return;
    const { severity } = rule.conditions;
    const previousAlertId = at.previous as `sal_${string}` | null; // as: the id of an alert
    const alert = await insertAlert(tx, scope, {
      ruleId: rule.id,
      type: rule.type,
      severity,
      entityType,
      entityId,
      count: at.count,
      lastEventAt: lastAt,
      previousAlertId,
    });
    if (scope.tenantId === INSTALLATION) return;
    const data = { alertId: alert.id, type: alert.type, severity, ruleId: alert.ruleId, entityType: alert.entityType, entityId };
    await emit(tx, [happened(scope, alertOpened, alert.id, data)]);
  };

  /** The block to make, if the rule is met now and was not before. */
  const apply = async (tx: Tx, scope: SystemScope, rule: SecurityRule, subject: Subject): Promise<NewBlock | null> => {
    const now = clock.now();
    const windowMs = rule.conditions.windowSeconds * 1_000;
    const last = await findLastAlert(tx, scope, { ...subject, ruleId: rule.id });
    if (last !== null && last.status !== "resolved") {
      const count = await sumSince(tx, subject, new Date(Date.parse(last.createdAt) - windowMs));
      await renewAlert(tx, scope, last.id, { count: Math.max(count, last.count), lastEventAt: subject.lastAt });
      return blockOf(rule, subject, now);
    }
    const since = Math.max(now.getTime() - windowMs, last?.resolvedAt == null ? 0 : Date.parse(last.resolvedAt));
    const count = await sumSince(tx, subject, new Date(since));
    if (count < rule.conditions.count) return null;
    if (rule.actions.alert) await raise(tx, scope, rule, { subject, count, previous: last?.id ?? null });
    return blockOf(rule, subject, now);
  };

  const blockAll = async (tx: Tx, scope: SystemScope, wanted: readonly NewBlock[]): Promise<boolean> => {
    if (wanted.length === 0) return false;
    audit.begin(tx);
    let isBlocked = false;
    for (const block of wanted) isBlocked = (await blocks.blockByRule(tx, scope, block)) || isBlocked;
    const actor = { type: "operator", id: wanted[0]?.createdBy ?? "", email: null } as const;
    if (isBlocked)
      await audit.append(tx, {
        tenantId: scope.tenantId,
        actor,
        action: "security.rule",
        code: null,
        call: null,
        resource: { type: "blocked-entities", id: null },
        onlyChanges: true,
      });
    return isBlocked;
  };

  const evaluate = async (tx: Tx): Promise<{ readonly taken: number; readonly isBlocked: boolean }> => {
    const events = await takePending(tx, BATCH);
    const [first] = events;
    if (first === undefined) return { taken: 0, isBlocked: false };
    const scope = { tenantId: first.tenantId as TenantId }; // as: from the row
    await tx.query(LOCK, [`security alerts of ${scope.tenantId}`]);
    const rules = (await listRules(tx, scope)).filter(({ enabled }) => enabled);
    const wanted: NewBlock[] = [];
    for (const subject of subjectsOf(events))
      for (const rule of rules) {
        const block = rule.type === subject.type ? await apply(tx, scope, rule, subject) : null;
        if (block !== null) wanted.push(block);
      }
    return { taken: events.length, isBlocked: await blockAll(tx, scope, wanted) };
  };

  return {
    name: "security.evaluate",
    everyMs: EVERY_MS,
    run: async () => {
      const { taken, isBlocked } = await db.tx(evaluate);
      if (isBlocked) blocks.spread();
      return taken > 0;
    },
  };
};
