// What a feature gives to the frame, and the kit that an ordinary feature gets from it.
import type { Group } from "../../protocol/index.ts";
import type { Clock } from "../core/clock.ts";
import type { Enqueue } from "../core/delivery.ts";
import type { Emit, Hint } from "../core/events.ts";
import type { Handlers } from "../core/feature.ts";
import type { Db } from "../platform/db.ts";
import type { Job } from "../platform/jobs.ts";
import type { FeatureGauge } from "../platform/metrics.ts";
import type { Consumer } from "../platform/outbox.ts";
import type { SecretBox } from "../platform/secrets.ts";
import type { Counters, Plan } from "./tenants/index.ts";

/** One feature implements one group of the contract. The frame reads all of this off the feature; only the handlers are required. */
export interface Feature<G extends Group = Group> {
  readonly handlers: Handlers<G>;
  readonly jobs?: readonly Job[];
  /** Receives every durable event of every tenant, in order and at least once, in the transaction that marks it as dispatched. */
  readonly consumer?: Consumer;
  /** Counts what the plan limits, by the names of the plan's table. */
  readonly counters?: Counters;
  readonly gauges?: readonly FeatureGauge[];
}

/** One feature per group: a group without a feature does not compile. */
export type FeaturesOf<C extends Readonly<Record<string, Group>>> = { readonly [G in keyof C]: Feature<C[G]> };

export interface FeatureKit {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly hint: Hint;
  /** Orders commands for devices in the caller's transaction. */
  readonly enqueue: Enqueue;
  readonly plan: Plan;
  readonly secretBox: SecretBox;
}
