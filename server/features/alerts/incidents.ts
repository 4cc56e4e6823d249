// Turns what the rules found into alerts: targets that fire join an alert, open one again or open a new one, and alerts without a firing target end.
import type { TenantId } from "../../../protocol/index.ts";
import { contract } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { happened } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import type { FeatureKit } from "../kit.ts";
import { queueMessages } from "./notify.ts";
import {
  type AffectedTarget,
  type AlertRow,
  addMembers,
  clearMembers,
  findCandidates,
  insertAlerts,
  type NewAlert,
  recountAlerts,
  reopenAlerts,
  resolveIdle,
} from "./store/incidents.ts";
import type { Observation } from "./store/observe.ts";

export interface Firing {
  readonly seen: Observation;
  readonly flapping: boolean;
}
export interface Clearing {
  readonly tenant_id: string;
  readonly target_id: string;
  readonly alert_id: string | null;
}

interface Placed {
  readonly members: readonly AffectedTarget[];
  readonly created: readonly NewAlert[];
  readonly reopened: ReadonlyMap<string, number>;
}

const unique = (texts: readonly (string | null)[]): string[] => [...new Set(texts.filter((text) => text !== null))];

/** Which alert each target belongs to. */
const place = async (tx: Tx, firings: readonly Firing[]): Promise<Placed> => {
  const seen = firings.map((firing) => firing.seen);
  const found = await findCandidates(tx, {
    alertIds: unique(seen.map(({ alert_id }) => alert_id)),
    tenantIds: unique(seen.map(({ tenant_id }) => tenant_id)),
    ruleIds: unique(seen.map(({ rule_id }) => rule_id)),
  });
  const byId = new Map(found.map((alert) => [alert.alert_id, alert]));
  const young = new Map(found.filter(({ is_young }) => is_young).map(({ rule_id, alert_id }) => [rule_id, alert_id]));
  const [created, reopened] = [new Map<string, NewAlert>(), new Map<string, number>()];
  const placeOf = (target: Observation): string => {
    const before = byId.get(target.alert_id ?? "");
    if (before !== undefined && before.resolved_at === null) return before.alert_id;
    const coolsUntil = (before?.resolved_at?.getTime() ?? Number.NEGATIVE_INFINITY) + target.cooldown_seconds * 1_000;
    if (before !== undefined && coolsUntil > target.at.getTime()) {
      reopened.set(before.alert_id, target.cooldown_seconds);
      return before.alert_id;
    }
    const joined = young.get(target.rule_id) ?? created.get(target.rule_id)?.alert_id;
    if (joined !== undefined) return joined;
    const { tenant_id, rule_id, rule_name, type, severity, target_id, value } = target;
    const alert = { alert_id: newId("alr"), tenant_id, rule_id, rule_name, type, severity, target_id, value };
    created.set(rule_id, alert);
    return alert.alert_id;
  };
  const members = seen.map((target) => {
    const { tenant_id, target_id, is_device, name, tags, value } = target;
    return { tenant_id, alert_id: placeOf(target), target_id, is_device, name, tags, value };
  });
  return { members, created: [...created.values()], reopened };
};

const { opened, resolved } = contract.alerts.events;

export const eventDataOf = (row: AlertRow) => ({
  alertId: row.alert_id as `alr_${string}`, // as: columns are plain text, here and below
  ruleId: row.rule_id as `arl_${string}`,
  type: row.type,
  severity: row.severity as "info" | "warning" | "critical",
  title: row.target_count === 1 ? row.rule_name : `${row.rule_name}: ${row.target_count} devices`,
  occurrences: row.occurrences,
  ...(row.target_count === 1 && row.target_id.startsWith("dev_") ? { deviceId: row.target_id as `dev_${string}` } : {}),
});
const scopeOf = (row: AlertRow) => ({ tenantId: row.tenant_id as TenantId });

export interface IncidentsDeps extends Pick<FeatureKit, "emit"> {
  readonly portalUrl: () => string;
}

/** Returns the alert of each target that fires, in their order. */
export const createIncidents =
  ({ emit, portalUrl }: IncidentsDeps) =>
  async (tx: Tx, firings: readonly Firing[], clearings: readonly Clearing[]): Promise<readonly string[]> => {
    if (firings.length + clearings.length === 0) return [];
    const { members, created, reopened } = firings.length === 0 ? { members: [], created: [], reopened: new Map<string, number>() } : await place(tx, firings);
    await insertAlerts(tx, created);
    await reopenAlerts(
      tx,
      [...reopened].map(([alert_id, cooldown_seconds]) => ({ alert_id, cooldown_seconds })),
    );
    await addMembers(tx, members);
    const cleared = clearings.flatMap(({ tenant_id, target_id, alert_id }) => (alert_id === null ? [] : [{ tenant_id, target_id, alert_id }]));
    await clearMembers(tx, cleared);
    const grown = unique(members.map(({ alert_id }) => alert_id));
    const flapping = unique(members.filter((_, at) => firings[at]?.flapping === true).map(({ alert_id }) => alert_id));
    const all = unique([...grown, ...cleared.map(({ alert_id }) => alert_id)]);
    const rows = await recountAlerts(tx, { all, grown, flapping });
    const isNew = new Set([...created.map(({ alert_id }) => alert_id), ...reopened.keys()]);
    const ended = await resolveIdle(tx, all);
    await emit(tx, [
      ...rows.filter(({ alert_id }) => isNew.has(alert_id)).map((row) => happened(scopeOf(row), opened, row.alert_id, eventDataOf(row))),
      ...ended.map((row) => happened(scopeOf(row), resolved, row.alert_id, { ...eventDataOf(row), actor: "auto" })),
    ]);
    await queueMessages(
      tx,
      "resolved",
      ended.filter(({ was_told }) => was_told).map(({ alert_id }) => alert_id),
      portalUrl(),
    );
    return members.map(({ alert_id }) => alert_id);
  };
