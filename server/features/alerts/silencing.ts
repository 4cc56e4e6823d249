// Keeps the alerts' record of which of their targets are silenced up to date: at every evaluation, and when somebody adds or ends a silence.
import type { Tx } from "../../core/database.ts";
import { createSilenced } from "./silence-match.ts";
import { activeSilences, findSilenceable, writeSilenced } from "./store/incidents.ts";

const MAX_TARGETS = 50_000;

/** `tenantId` null: of all tenants. */
export const applySilences = async (tx: Tx, tenantId: string | null): Promise<void> => {
  const silences = await activeSilences(tx, tenantId);
  const targets = await findSilenceable(tx, [...new Set(silences.map(({ tenant_id }) => tenant_id))], tenantId, MAX_TARGETS);
  if (targets.length === 0) return;
  const isSilenced = createSilenced(silences);
  const changed = targets.flatMap((target) => {
    const silenced = isSilenced(target);
    const { tenant_id, alert_id, target_id } = target;
    return silenced === target.silenced ? [] : [{ tenant_id, alert_id, target_id, silenced }];
  });
  await writeSilenced(tx, changed, [...new Set(targets.map(({ alert_id }) => alert_id))]);
};
