// What all features stand on: events, audit records, mail, plan limits, live hints.
import type { RegisteredOutcome } from "../core/ports/command-outcomes.ts";
import { createAudit } from "../features/audit/index.ts";
import { createTellCrossing } from "../features/billing/index.ts";
import { deploymentGroups } from "../features/deployments/index.ts";
import { createDeviceNames, findSeen } from "../features/devices/index.ts";
import type { FeatureKit } from "../features/kit.ts";
import { createLive, type LiveDeps } from "../features/live/index.ts";
import { createSecurityWatch } from "../features/security/index.ts";
import { type Counters, createPlan } from "../features/tenants/index.ts";
import { createBatch } from "../platform/database/batch.ts";
import { createMails } from "../platform/mail/mail.ts";
import { createSmtp } from "../platform/mail/smtp.ts";
import { type Blocked, createOutbound } from "../platform/outbound/outbound.ts";
import { createOutbox } from "../platform/outbox/outbox.ts";
import { createHint } from "./changes.ts";
import type { FeaturesDeps } from "./deps.ts";
import { liveSettings, mailSettings, outboundGuard } from "./settings.ts";

/** The capabilities of features that are created later. */
interface Later {
  readonly enqueue: FeatureKit["enqueue"];
  readonly isShown: LiveDeps["isShown"];
  readonly onError: (what: string, error: unknown) => void;
}

export const createGroundwork = (deps: FeaturesDeps, { enqueue, isShown, onError }: Later) => {
  const { config, db, secretBox, clock, log, cluster } = deps;
  const outbox = createOutbox({ db, onError, settings: { keepDays: config.EVENT_RETENTION_DAYS } });
  const { emit } = outbox;
  const deviceNames = createDeviceNames(db, createBatch);
  const live = createLive({
    db,
    clock,
    isShown,
    deviceNames,
    readSeen: (devices) => findSeen(db, devices),
    onError: (error) => onError("live feed", error),
    settings: liveSettings(config),
  });
  const hint = createHint(live, cluster.changes);
  // Both are filled when the features are connected.
  const counters: Counters = { ...deploymentGroups.counters };
  const outcomes = new Map<string, RegisteredOutcome>();
  const plan = createPlan({ replaced: config.PLAN_LIMITS_JSON, counters, crossed: createTellCrossing(emit) });
  const audit = createAudit({ db, clock, secretBox, keepDays: config.AUDIT_RETENTION_DAYS });
  const mails = createMails({ db, clock, secretBox, log, send: createSmtp(mailSettings(config)) });
  const watch = createSecurityWatch(clock);
  const onBlocked = (blocked: Blocked): void => {
    log.warn({ blocked }, "refused to call an address");
    watch.note({ type: "webhook.ssrf_blocked", tenantId: blocked.owner, entityType: "webhook", entityId: blocked.host, reason: blocked.reason });
  };
  const outbound = createOutbound({ guard: outboundGuard(config, deps.publicUrl, deps.ownListeners), onBlocked, clock, settings: deps.settings?.outbound });
  const kit: FeatureKit = { db, clock, emit, hint, until: live.until, audit: audit.trail, enqueue, plan, secretBox, mails, outbound, watch };
  return { kit, outbox, live, audit, mails, outbound, counters, outcomes, watch };
};
