// The checks behind the health page: the database must answer; Redis and the load only degrade a node.
import type { Bus, BusDegradation } from "../../platform/bus.ts";
import type { HealthCheck } from "./index.ts";

export const databaseCheck = (ping: () => Promise<void>): HealthCheck => ({
  name: "database",
  required: true,
  check: () => ping().then(() => ({ status: "healthy", message: "answers" })),
});

const DEGRADATIONS: Readonly<Record<BusDegradation, string>> = {
  away: "does not answer; hints between nodes are lost, the sweep delivers",
  deaf: "answers, but the subscription is deaf; hints between nodes are lost, the sweep delivers",
  "refuses writes": "answers, but takes no writes; limits and hints are each node's own, the sweep delivers",
};

/** Without Redis nodes receive no hints from each other; each finds by itself what is due, so it may keep its traffic. */
export const redisCheck = (bus: Pick<Bus, "degradation">): HealthCheck => ({
  name: "redis",
  required: false,
  check: async () => {
    const degradation = bus.degradation();
    return degradation === null ? { status: "healthy", message: "answers" } : { status: "degraded", message: DEGRADATIONS[degradation] };
  },
});

/** An overloaded node keeps its agents and refuses new ones; other traffic may go on. */
export const loadCheck = (isOverloaded: () => boolean): HealthCheck => ({
  name: "load",
  required: false,
  check: async () =>
    isOverloaded() ? { status: "degraded", message: "has more than it can do; takes no agents in" } : { status: "healthy", message: "keeps up" },
});
