// What the service says of itself: its health, its name and version, and how to sign in.
import type { OutgoingMail } from "../platform/mail.ts";
import { commit, SERVICE, version } from "../version.ts";
import { type GeneralDeps, statedLimits } from "./general/index.ts";
import { createHealth, databaseCheck, loadCheck, mailCheck, redisCheck } from "./health/index.ts";
import type { FeaturesDeps } from "./index.ts";

const SERVICE_FEATURES = ["agent-socket", "poll", "live-feed", "idempotency"];

export const healthOf = ({ clock, node, db, config, cluster }: FeaturesDeps, mails: Pick<OutgoingMail, "enabled" | "isDelivering">) =>
  createHealth({
    clock,
    version,
    startedAtMs: clock.elapsed(),
    isDraining: () => node.report().draining,
    checks: [
      databaseCheck(db.healthy),
      ...(config.REDIS_URL === undefined ? [] : [redisCheck(cluster.bus)]),
      loadCheck(() => node.report().overloaded),
      ...(mails.enabled ? [mailCheck(mails.isDelivering)] : []),
    ],
  });

export const serviceFacts = ({ config, tokens, publicUrl }: FeaturesDeps): Pick<GeneralDeps, "service" | "auth"> => ({
  service: {
    name: SERVICE,
    version,
    environment: config.NODE_ENV,
    commit,
    features: SERVICE_FEATURES,
    limits: statedLimits(),
    docsUrl: () => `${publicUrl()}/v1/docs`,
  },
  auth: {
    issuer: tokens.issuer,
    audience: tokens.audience,
    algorithms: tokens.algorithms,
    local: tokens.local !== undefined,
    jwksUri: () => new URL(tokens.jwksUri, publicUrl()).href,
  },
});
