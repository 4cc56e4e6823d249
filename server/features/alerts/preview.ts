// Tries a rule on stored data, with the same steps as the evaluation: which devices would have opened an alert, and when.
import type { AlertPreview, AlertRule, AlertScope, METRICS_WITH_HISTORY } from "../../../protocol/index.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import { judgeValue, step, type TargetState } from "./model.ts";
import { findNear, findSilent, readSamples, type Sample } from "./store/preview.ts";

/** Devices whose samples one call reads: about 72,000 rows in 24 hours. */
const MAX_DEVICES = 50;
const MAX_FIRINGS = 500;

export interface PreviewInput extends Pick<AlertRule, "operator" | "threshold" | "clearThreshold" | "forSeconds" | "clearForSeconds"> {
  readonly metric: (typeof METRICS_WITH_HISTORY)[number];
  readonly scope: AlertScope | null;
  readonly hours: number;
}
type FiringRecord = AlertPreview["firings"][number];

/** The firings of one device from its samples, which are in order. */
export const replay = (rule: PreviewInput, samples: readonly Omit<Sample, "device_id" | "name">[]): Omit<FiringRecord, "deviceId" | "name">[] => {
  const firings: Omit<FiringRecord, "deviceId" | "name">[] = [];
  let state: TargetState | null = null;
  for (const { at, value } of samples) {
    const { state: next, turn } = step(state, judgeValue(rule, value), rule, at.getTime());
    state = next;
    if (turn === "fires") firings.push({ openedAt: at.toISOString(), clearedAt: null, value });
    const last = firings.at(-1);
    if (turn === "clears" && last !== undefined) firings[firings.length - 1] = { ...last, clearedAt: at.toISOString() };
  }
  return firings;
};

const summed = (hours: number, firings: readonly FiringRecord[], truncated: boolean): AlertPreview => {
  const sorted = [...firings].sort((a, b) => (a.openedAt < b.openedAt ? 1 : -1));
  return { hours, deviceCount: new Set(firings.map(({ deviceId }) => deviceId)).size, truncated, firings: sorted.slice(0, MAX_FIRINGS) };
};

const ofSilence = async (db: Db, scope: SystemScope, rule: PreviewInput): Promise<AlertPreview> => {
  if (!rule.operator.startsWith("g")) return summed(rule.hours, [], false);
  const seconds = Math.max(rule.threshold, 0) + rule.forSeconds;
  const found = await findSilent(db, scope, { ...rule, seconds }, MAX_FIRINGS + 1);
  const firings = found.slice(0, MAX_FIRINGS).map(({ device_id, name, from, until }) => {
    const openedAt = new Date(from.getTime() + seconds * 1_000);
    return { deviceId: device_id, name, openedAt: openedAt.toISOString(), clearedAt: until?.toISOString() ?? null, value: Math.round(seconds) };
  });
  return summed(rule.hours, firings, found.length > MAX_FIRINGS);
};

export const preview = async (db: Db, scope: SystemScope, rule: PreviewInput): Promise<AlertPreview> => {
  const { metric, hours } = rule;
  if (metric === "device.offline_seconds") return ofSilence(db, scope, rule);
  const near = await findNear(db, scope, { ...rule, metric }, MAX_DEVICES + 1);
  const tried = near.slice(0, MAX_DEVICES);
  const samples = tried.length === 0 ? [] : await readSamples(db, scope, { metric, hours, deviceIds: tried.map(({ device_id }) => device_id) });
  const firings = tried.flatMap(({ device_id: deviceId, name }) =>
    replay(
      rule,
      samples.filter((sample) => sample.device_id === deviceId),
    ).map((firing) => ({ deviceId, name, ...firing })),
  );
  return summed(hours, firings, near.length > MAX_DEVICES);
};
