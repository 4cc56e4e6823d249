// Every operation of the contract with the handler that its room gives it; and the two rooms that tell about the service itself.
import { contract } from "../protocol/index.ts";
import type { Config } from "./config.ts";
import { createGeneral, type GeneralRoom, statedLimits } from "./features/general/index.ts";
import { createHealth, type HealthCheck } from "./features/health/index.ts";
import { createCatalogue, type Entry } from "./gateway/catalogue.ts";
import type { Limits } from "./gateway/limits.ts";
import type { Ailment, Bus } from "./platform/bus.ts";
import type { Db } from "./platform/db.ts";
import type { Tokens } from "./platform/jwt.ts";
import type { Rooms } from "./rooms.ts";
import { commit, SERVICE, version } from "./version.ts";

export interface OperationsDeps {
  readonly config: Config;
  readonly db: Db;
  readonly tokens: Tokens;
  readonly rooms: Rooms;
  readonly bus: Bus;
  readonly changelog: string;
  /** Known when the listener is open, hence asked at each use. */
  readonly publicUrl: () => string;
  readonly state: { readonly draining: boolean };
  readonly isOverloaded: () => boolean;
}

const FEATURES = ["agent-socket", "poll", "live-feed", "idempotency"];

/** The room that tells about the service itself. */
const aboutTheService = ({ config, db, rooms, tokens, changelog, publicUrl }: OperationsDeps, rateLimits: Limits): GeneralRoom =>
  createGeneral({
    db,
    changelog,
    rateLimits,
    memberships: rooms.tenants.memberships,
    service: {
      name: SERVICE,
      version,
      environment: config.NODE_ENV,
      commit,
      features: FEATURES,
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

const AILMENTS: Readonly<Record<Ailment, string>> = {
  away: "does not answer; hints between nodes are lost, the sweep delivers",
  deaf: "answers, but the subscription is deaf; hints between nodes are lost, the sweep delivers",
  "refuses writes": "answers, but takes no writes; limits and hints are each node's own, the sweep delivers",
};

/** Without Redis nodes hear nothing of each other; each finds by itself what is due, so it may go on receiving traffic. */
const redisCheck = (bus: Bus): HealthCheck => ({
  name: "redis",
  required: false,
  check: async () => {
    const ailment = bus.ailment();
    return ailment === null ? { status: "healthy", message: "answers" } : { status: "degraded", message: AILMENTS[ailment] };
  },
});

/** It serves whom it has, and takes no agents in: other traffic may go on. */
const loadCheck = (isOverloaded: () => boolean): HealthCheck => ({
  name: "load",
  required: false,
  check: async () =>
    isOverloaded() ? { status: "degraded", message: "has more than it can do; takes no agents in" } : { status: "healthy", message: "keeps up" },
});

const healthOf = ({ config, db, bus, rooms: { clock }, state, isOverloaded }: OperationsDeps) =>
  createHealth({
    clock,
    version,
    startedAtMs: clock.elapsed(),
    isDraining: () => state.draining,
    checks: [
      { name: "database", required: true, check: () => db.healthy().then(() => ({ status: "healthy", message: "answers" })) },
      ...(config.REDIS_URL === undefined ? [] : [redisCheck(bus)]),
      loadCheck(isOverloaded),
    ],
  });

const catalogueOf = (deps: OperationsDeps, general: GeneralRoom): readonly Entry[] => {
  const { pairing, devices, commands, agent, tenants, apiKeys, live, admin } = deps.rooms;
  return createCatalogue(contract, {
    health: healthOf(deps),
    general: general.handlers,
    pairing: pairing.handlers,
    devices: devices.handlers,
    commands: commands.handlers,
    agent: agent.handlers,
    tenants: tenants.handlers,
    apiKeys: apiKeys.handlers,
    live: live.handlers,
    admin: admin.handlers,
  });
};

/** Refuses to start when the contract contradicts itself or an operation has no handler. */
export const createOperations = (deps: OperationsDeps, limits: Limits): { readonly entries: readonly Entry[]; readonly general: GeneralRoom } => {
  const general = aboutTheService(deps, limits);
  return { general, entries: catalogueOf(deps, general) };
};
