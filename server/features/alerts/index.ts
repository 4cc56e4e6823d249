// Alerts: rules over devices, commands and events, the alerts that they open, silences, and channels that tell people.
import { contract } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { implement } from "../../core/feature.ts";
import type { FindStuck } from "../../core/people/stuck.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { type ActionsDeps, createAlertHandlers } from "./actions.ts";
import { createAlertAttention } from "./attention.ts";
import { type ChannelsDeps, createChannelHandlers, createSilenceHandlers } from "./channels.ts";
import { createEvaluation } from "./evaluate.ts";
import { budgetRule } from "./first-rules.ts";
import { createNotifier } from "./notify.ts";
import { createRuleHandlers, type RulesDeps } from "./rules.ts";
import { createSend } from "./send.ts";
import { createSignals } from "./signals.ts";
import { countAlerts, countOpenAlerts, deleteOldAlerts, findNamedAlerts } from "./store/alerts.ts";
import { countChannels } from "./store/channels.ts";
import { countNotifications, deleteOldNotifications, findUnsent } from "./store/notifications.ts";
import { countRules, hasRuleOn, insertRule } from "./store/rules.ts";
import { deleteOldSignals } from "./store/signals.ts";
import { deleteOldSilences } from "./store/silences.ts";

export interface AlertsDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan" | "secretBox" | "mails" | "outbound"> {
  readonly knownDevices: RulesDeps["knownDevices"];
  readonly holdFleets: RulesDeps["holdFleets"];
  readonly portalUrl: () => string;
  readonly onError: (error: unknown) => void;
}

const KEEP_ALERTS_DAYS = 90;
const KEEP_NOTIFICATIONS_DAYS = 30;
/** The longest window. */
const KEEP_SIGNALS_SECONDS = 3_600;
// Some attempts have failed by then.
const LATE_SECONDS = 900;

const createFindUnsent =
  ({ db, clock }: Pick<AlertsDeps, "db" | "clock">): FindStuck =>
  async (limit) =>
    (await findUnsent(db, secondsFromNow(-LATE_SECONDS, clock.now()), limit)).map(({ notificationId, tenantId, status, attempts, lastError, createdAt }) => ({
      kind: "alert_unsent",
      tenantId,
      id: notificationId,
      since: createdAt,
      reason: `${status === "failed" ? "given up" : "not sent yet"} after ${attempts} attempts${lastError === null ? "" : `: ${lastError}`}`,
      whatToDo: "The tenant's channel shows the same error, and its administrators can test it. It is listed for 30 days.",
    }));

const createRetention = ({ db, clock }: Pick<AlertsDeps, "db" | "clock">) => ({
  name: "alerts.retention",
  everyMs: 600_000,
  run: async (): Promise<boolean> => {
    const ago = (seconds: number): Date => secondsFromNow(-seconds, clock.now());
    const more = [
      await deleteOldAlerts(db, ago(KEEP_ALERTS_DAYS * DAY_SECONDS)),
      await deleteOldNotifications(db, { queuedBefore: ago(DAY_SECONDS), before: ago(KEEP_NOTIFICATIONS_DAYS * DAY_SECONDS) }),
      await deleteOldSilences(db, ago(KEEP_ALERTS_DAYS * DAY_SECONDS)),
      await deleteOldSignals(db, ago(KEEP_SIGNALS_SECONDS)),
    ];
    return more.includes(true);
  },
});

const createGauges = ({ db }: Pick<AlertsDeps, "db">) => [
  {
    name: "alerts_open",
    help: "Alerts that are not resolved, by severity",
    labels: ["severity"],
    read: async () => [...(await countOpenAlerts(db))].map(([severity, count]) => [{ severity }, count] as const),
  },
  {
    name: "alert_notifications",
    help: "Messages to alert channels of the last 30 days by status: queued, sent or failed",
    labels: ["status"],
    read: async () => [...(await countNotifications(db))].map(([status, count]) => [{ status }, count] as const),
  },
];

export interface AlertsFeature extends Feature<typeof contract.alerts> {
  /** Open alerts among those that the caller sees. */
  readonly countOpen: (scope: SystemScope) => Promise<number>;
  readonly countChannels: (scope: SystemScope) => Promise<number>;
  /** With the first budget of a tenant that has no rule on budgets. */
  readonly addBudgetRule: (tx: Tx, scope: SystemScope) => Promise<void>;
  /** As the targets of bulk operations. */
  readonly named: typeof findNamedAlerts;
}

export const createAlerts = (deps: AlertsDeps): AlertsFeature => {
  const send = createSend(deps);
  const signals = createSignals(deps);
  const channels: ChannelsDeps = { ...deps, send };
  const actions: ActionsDeps = deps;
  return {
    handlers: implement(contract.alerts, {
      ...createAlertHandlers(actions),
      ...createRuleHandlers({ ...deps, eventRulesChanged: signals.forget }),
      ...createSilenceHandlers(channels),
      ...createChannelHandlers(channels),
    }),
    jobs: [createEvaluation(deps).job, createNotifier({ ...deps, send }), createRetention(deps)],
    addBudgetRule: async (tx, scope) => {
      if (!(await hasRuleOn(tx, scope, "cost.budget"))) await insertRule(tx, scope, budgetRule());
    },
    countChannels: ({ tenantId }) => countChannels(deps.db, { tenantId }),
    named: findNamedAlerts,
    countOpen: async (scope) => {
      const { open } = await countAlerts(deps.db, scope);
      return open.info + open.warning + open.critical;
    },
    consumer: signals.consumer,
    attention: createAlertAttention(deps),
    counters: { alertRules: countRules },
    gauges: createGauges(deps),
    stuck: createFindUnsent(deps),
  };
};
