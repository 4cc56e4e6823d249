// What all features stand on: events, audit records, mail, plan limits, live hints.
import { CONNECT_PATHS } from "../../protocol/index.ts";
import { createManyEngine } from "../core/many/engine.ts";
import { createAuditTrail } from "../features/audit/index.ts";
import { createTellCrossing } from "../features/billing/index.ts";
import { deploymentGroups } from "../features/deployments/index.ts";
import type { FeatureKit } from "../features/kit.ts";
import { createSecurityWatch } from "../features/security/index.ts";
import { type Counters, createPlan } from "../features/tenants/index.ts";
import { createMails } from "../platform/mail/mail.ts";
import { createStuckMails } from "../platform/mail/mail-stuck.ts";
import { createSmtp } from "../platform/mail/smtp.ts";
import { type Blocked, createOutbound } from "../platform/outbound/outbound.ts";
import { createOutbox } from "../platform/outbox/outbox.ts";
import type { InstallationDeps, ServingDeps, Wiring } from "./deps.ts";
import { later, type Peers } from "./peers.ts";
import { openProvider } from "./service.ts";
import { mailSettings, outboundGuard } from "./settings.ts";

export const createWiring = (deps: InstallationDeps, serving: ServingDeps, peers: Peers): Wiring => {
  const { config, db, secretBox, clock, log, publicUrl } = deps;
  const failed = (what: string) => (error: unknown) => log.error({ what, error }, "background work failed");
  const outbox = createOutbox({ db, onError: (what, error) => failed(what)(error), settings: { keepDays: config.EVENT_RETENTION_DAYS } });
  const { emit } = outbox;
  const counters: Counters = { ...deploymentGroups.counters };
  const plan = createPlan({ replaced: config.PLAN_LIMITS_JSON, counters, crossed: createTellCrossing(emit) });
  const mails = createMails({ db, clock, secretBox, log, send: createSmtp(mailSettings(config)) });
  const watch = createSecurityWatch(clock);
  const onBlocked = (blocked: Blocked): void => {
    log.warn({ blocked }, "refused to call an address");
    watch.note({ type: "webhook.ssrf_blocked", tenantId: blocked.owner, entityType: "webhook", entityId: blocked.host, reason: blocked.reason });
  };
  const guard = outboundGuard(config, publicUrl, { isOwn: (...asked) => serving.ownListeners.isOwn(...asked) });
  const outbound = createOutbound({ guard, onBlocked, clock, settings: deps.settings?.outbound });
  const manyEngine = createManyEngine({ db, clock, wakeJob: (name) => serving.book.wake(name), onError: failed("step"), settings: deps.settings?.many });
  const kit: FeatureKit = {
    db,
    clock,
    emit,
    /** This node's viewers get the hint itself; other nodes only learn that the tenant has changed. */
    hint: (tenantId, make) => {
      if (peers.live.isWatched(tenantId)) peers.live.hint(make());
      serving.cluster.changes.changed(tenantId);
    },
    until: (scope, awaited) => peers.live.until(scope, awaited),
    audit: createAuditTrail({ secretBox }),
    enqueue: (...order) => peers.commands.enqueue(...order),
    enqueueEach: (...orders) => peers.commands.enqueueEach(...orders),
    many: manyEngine,
    plan,
    secretBox,
    mails,
    outbound,
    watch,
  };
  return {
    ...deps,
    serving,
    kit,
    outbox,
    manyEngine,
    mails,
    outbound,
    watch,
    provider: openProvider(deps),
    counters,
    outcomes: new Map(),
    attention: [],
    stuck: [outbox.stuck, createStuckMails(kit), manyEngine.stuck],
    toLimit: (...limit) => peers.fleets.toLimit(...limit),
    socketUrl: () => `${publicUrl().replace(/^http/, "ws")}${CONNECT_PATHS[0]}`,
    // Without Redis messages stay within the process, which suffices for a single node.
    hintsArrive: () => serving.cluster.bus.healthy() && (config.REDIS_URL !== undefined || peers.admin.liveNodes() <= 1),
    failed,
  };
};

/** The command line serves no calls, so what needs a node must not be opened there. */
export const notServing: ServingDeps = later(() => {
  throw new Error("this process serves no calls, so it has no node, no cluster and no sockets");
});
