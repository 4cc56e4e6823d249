// Webhooks: subscriptions of a tenant to its events, their delivery and its log, and the log of events.
import { contract } from "../../../protocol/index.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Log } from "../../platform/telemetry/log.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createWebhookAttention } from "./attention.ts";
import { createAttempt } from "./delivery/attempt.ts";
import { WORKER_DEFAULTS, type WorkerSettings } from "./delivery/delivery-session.ts";
import { createDisable } from "./delivery/disable.ts";
import { createWorker } from "./delivery/worker.ts";
import { createFanOut } from "./fan-out.ts";
import { createMaintenance } from "./maintenance.ts";
import { createDeliveryLog } from "./operations/delivery-log.ts";
import { createEventLog } from "./operations/event-log.ts";
import { createReplay } from "./operations/replay.ts";
import { createTestDelivery } from "./operations/test-delivery.ts";
import { createWebhookChanges } from "./operations/webhook-changes.ts";
import { countWebhooks } from "./store/endpoints.ts";

export const DELIVERY_JOB = "webhooks.deliver";

export interface WebhooksDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan" | "secretBox" | "outbound"> {
  readonly log: Pick<Log, "error">;
  readonly nodeId: string;
  /** The devices that a limited caller sees. */
  readonly deviceIds: (scope: SystemScope) => Promise<readonly string[]>;
  /** Lets the delivery job run now. */
  readonly wakeJob: () => void;
  readonly keepDays: number;
  readonly settings?: Partial<WorkerSettings> | undefined;
}

export interface Webhooks extends Feature<typeof contract.webhooks> {
  /** The relay of this node has committed these events. */
  readonly dispatched: (events: readonly DispatchedEvent[]) => void;
  /** Something has happened in these tenants on other nodes. */
  readonly recheck: (tenantIds: readonly string[]) => void;
}

export const createWebhooks = (deps: WebhooksDeps): Webhooks => {
  const { db, clock, emit, log, secretBox, nodeId, wakeJob } = deps;
  const disable = createDisable({ emit, clock });
  const settings: WorkerSettings = { ...WORKER_DEFAULTS, ...deps.settings };
  const attempt = createAttempt({ ...deps, timeoutMs: settings.timeoutMs });
  const { jobs, gauges, stuck } = createMaintenance(deps);
  const worker = createWorker({ db, clock, log, secretBox, emit, disable, attempt, holder: nodeId, settings });
  /** Tenants with deliveries that the relay has added here and not yet committed. */
  const added = new Set<string>();
  const wake = (tenantIds: readonly string[]): void => {
    worker.wake(tenantIds);
    wakeJob();
  };
  return {
    handlers: implement(contract.webhooks, {
      ...createWebhookChanges({ ...deps, disable }),
      ...createDeliveryLog(deps),
      ...createTestDelivery({ ...deps, attempt }),
      ...createReplay(deps),
      ...createEventLog(deps),
    }),
    consumer: createFanOut((tenantId) => void added.add(tenantId)),
    attention: createWebhookAttention(deps),
    counters: { webhooks: countWebhooks },
    jobs: [{ name: DELIVERY_JOB, everyMs: 1_000, run: worker.run }, ...jobs],
    gauges,
    stuck,
    dispatched: (events) => {
      if (added.size === 0) return;
      const tenantIds = [...new Set(events.map(({ tenantId }) => tenantId))].filter((tenantId) => added.delete(tenantId));
      if (tenantIds.length > 0) wake(tenantIds);
    },
    recheck: (tenantIds) => worker.wake(tenantIds),
  };
};
