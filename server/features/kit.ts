// What a feature gives to the frame, and the kit that an ordinary feature gets from it.
import type { Group } from "../../protocol/index.ts";
import type { Clock } from "../core/clock.ts";
import type { OutcomeHandlers } from "../core/command-outcomes.ts";
import type { Enqueue } from "../core/delivery.ts";
import type { Emit, Hint } from "../core/events.ts";
import type { Handlers } from "../core/feature.ts";
import type { Db } from "../platform/db.ts";
import type { Job } from "../platform/jobs.ts";
import type { FeatureGauge } from "../platform/metrics.ts";
import type { Consumer } from "../platform/outbox.ts";
import type { SecretBox } from "../platform/secrets.ts";
import type { Counters, Plan } from "./tenants/index.ts";

/** One feature implements one group of the contract. The frame reads all of this off the feature. */
export type Feature<G extends Group> = FeatureParts & { readonly handlers: Handlers<G> } & FeatureOutcomes<G>;

/** A group with command types needs a handler for the outcome of each. */
type FeatureOutcomes<G extends Group> = keyof G["commands"] extends never ? unknown : { readonly outcomes: OutcomeHandlers<G> };

export interface FeatureParts {
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
