// The checks behind the health routes: a node needs the database; trouble with Redis or high load only degrades it.
import { WRONG_CLOCK_MS } from "../../core/clock.ts";
import type { Bus, BusDegradation } from "../../platform/cluster/bus.ts";
import type { Status } from "./rules.ts";

export interface CheckOutcome {
  readonly status: Status;
  /** Public, so without addresses and secrets. */
  readonly message: string;
  readonly latencyMs?: number;
}

export interface HealthCheck {
  readonly name: string;
  /** The service cannot work without it. */
  readonly required: boolean;
  /** A rejection counts as unhealthy. */
  check(): Promise<CheckOutcome>;
}

/** A database that answers and takes no changes is of no use: the message says which. */
export const databaseCheck = (condition: () => Promise<CheckOutcome>): HealthCheck => ({ name: "database", required: true, check: condition });

const DEGRADATIONS: Readonly<Record<BusDegradation, string>> = {
  away: "does not answer: hints between nodes get lost, and the sweep delivers",
  deaf: "answers, but the subscription receives nothing: hints between nodes get lost, and the sweep delivers",
  "refuses writes": "answers, but refuses writes: each node limits by itself, hints between nodes get lost, and the sweep delivers",
};

/** Without Redis nodes receive no hints from each other, but each finds due commands by itself, so it keeps its traffic. */
export const redisCheck = (bus: Pick<Bus, "degradation">): HealthCheck => ({
  name: "redis",
  required: false,
  check: async () => {
    const degradation = bus.degradation();
    return degradation === null ? { status: "healthy", message: "answers" } : { status: "degraded", message: DEGRADATIONS[degradation] };
  },
});

/** An overloaded node keeps its agents, refuses new ones and serves other traffic. */
export const loadCheck = (isOverloaded: () => boolean): HealthCheck => ({
  name: "load",
  required: false,
  check: async () => (isOverloaded() ? { status: "degraded", message: "is overloaded and refuses new agents" } : { status: "healthy", message: "keeps up" }),
});

/** A node with a wrong clock goes by the database's and keeps its traffic. What it logs has the wrong time. */
export const clockCheck = (offsetMs: () => number): HealthCheck => ({
  name: "clock",
  required: false,
  check: async () => {
    const offset = offsetMs();
    if (Math.abs(offset) <= WRONG_CLOCK_MS) return { status: "healthy", message: "agrees with the database's" };
    const how = `${Math.round(Math.abs(offset) / 1_000)} s ${offset > 0 ? "ahead of" : "behind"}`;
    return { status: "degraded", message: `is ${how} the database's, which counts; set the one that is wrong` };
  },
});

/** Asks nothing: probes must not become calls to the provider. */
export const billingCheck = (isAnswering: () => boolean): HealthCheck => ({
  name: "billingProvider",
  required: false,
  check: async () =>
    isAnswering()
      ? { status: "healthy", message: "is Stripe, and no recent call of this node has failed" }
      : { status: "degraded", message: "is Stripe, and did not serve the last call of this node" },
});

/** Mail that cannot be sent waits; nothing else does. */
export const mailCheck = (isDelivering: () => boolean): HealthCheck => ({
  name: "mail",
  required: false,
  check: async () =>
    isDelivering() ? { status: "healthy", message: "sends" } : { status: "degraded", message: "the mail server takes no mail from this node; mails wait" },
});
