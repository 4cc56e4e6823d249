// Creates the webhooks and lets them hear of new events: at once where the relay has run, by a hint on the other nodes.

import type { FeatureKit } from "../features/kit.ts";
import { createWebhooks, DELIVERY_JOB, type WebhooksDeps } from "../features/webhooks/index.ts";
import type { ChangeNotifier } from "../platform/cluster/change-notifier.ts";
import type { Outbox } from "../platform/outbox/outbox.ts";
import type { FeaturesDeps } from "./deps.ts";

interface Others extends Pick<WebhooksDeps, "deviceIds"> {
  readonly kit: FeatureKit;
  readonly outbox: Pick<Outbox, "subscribe">;
  readonly changes: Pick<ChangeNotifier, "listen">;
}

export const connectWebhooks = ({ config, log, nodeId, book, settings }: FeaturesDeps, { kit, outbox, changes, deviceIds }: Others) => {
  const webhooks = createWebhooks({
    ...kit,
    log,
    nodeId,
    deviceIds,
    wakeJob: () => book.wake(DELIVERY_JOB),
    keepDays: config.EVENT_RETENTION_DAYS,
    settings: settings?.webhooks,
  });
  outbox.subscribe((events) => webhooks.dispatched(events));
  changes.listen((tenantIds) => webhooks.recheck(tenantIds));
  return webhooks;
};
