// The interface between a feature and the app: the parts that a feature returns, and the kit that it gets.
import type { Group } from "../../protocol/index.ts";
import type { Clock } from "../core/clock.ts";
import type { Emit, Hint } from "../core/events.ts";
import type { Handlers } from "../core/feature.ts";
import type { Many, ManyStepper } from "../core/many/types.ts";
import type { AttentionSource } from "../core/people/attention.ts";
import type { FindStuck } from "../core/people/stuck.ts";
import type { AuditTrail } from "../core/ports/audit.ts";
import type { HideFor, OutcomeHandlers, ProgressHandler } from "../core/ports/command-outcomes.ts";
import type { Enqueue, EnqueueEach } from "../core/ports/delivery.ts";
import type { EdgePart } from "../core/ports/edge.ts";
import type { Mails } from "../core/ports/mail.ts";
import type { Outbound } from "../core/ports/outbound.ts";
import type { SecurityWatch } from "../core/ports/security.ts";
import type { Db } from "../platform/database/db.ts";
import type { Job } from "../platform/jobs.ts";
import type { SecretBox } from "../platform/keys/secrets.ts";
import type { Consumer } from "../platform/outbox/outbox.ts";
import type { FeatureGauge } from "../platform/telemetry/metrics.ts";
import type { Until } from "./live/until.ts";
import type { Counters, Plan } from "./tenants/plan-limits.ts";

/** A feature implements one group of the contract. wiring/index.ts registers all of its parts. */
export type Feature<G extends Group> = FeatureParts & { readonly handlers: Handlers<G> } & FeatureOutcomes<G>;

/** A group that declares command types needs an outcome handler for each. */
type FeatureOutcomes<G extends Group> = keyof G["commands"] extends never ? unknown : { readonly outcomes: OutcomeHandlers<G> };

export interface FeatureParts {
  readonly jobs?: readonly Job[];
  /** Receives every durable event of every tenant, in order and at least once, in the transaction that marks it as dispatched. */
  readonly consumer?: Consumer;
  /** Counters of the resources that the plan limits, by their names in tenants/plan-table.ts. */
  readonly counters?: Counters;
  readonly gauges?: readonly FeatureGauge[];
  /** What the edge serves of the feature. */
  readonly edge?: EdgePart;
  /** Hides secrets in what agents say of the feature's commands. */
  readonly hideFor?: HideFor;
  /** Told while an agent works on a command of the feature, by the command's name in its group. */
  readonly progress?: Readonly<Record<string, ProgressHandler>>;
  /** What of the feature has waited for longer than it should, over all tenants. */
  readonly stuck?: FindStuck;
  /** What of the feature needs somebody in a tenant. */
  readonly attention?: AttentionSource;
  /** The kinds of work that the feature does in steps. */
  readonly steppers?: readonly ManyStepper[];
}

/** One feature per group: a group without a feature does not compile. */
export type FeaturesOf<C extends Readonly<Record<string, Group>>> = { readonly [G in keyof C]: Feature<C[G]> };

export interface FeatureKit {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  /** For what does not run in `commit`, which records by itself. */
  readonly audit: AuditTrail;
  readonly hint: Hint;
  /** Holds a call until a record is what its caller waits for. */
  readonly until: Until;
  /** Orders commands for devices in the caller's transaction. */
  readonly enqueue: Enqueue;
  /** Orders commands for many devices, each accepted or refused on its own. */
  readonly enqueueEach: EnqueueEach;
  /** Begins, wakes and ends work that goes on in steps. */
  readonly many: Many;
  readonly plan: Plan;
  readonly secretBox: SecretBox;
  readonly mails: Mails;
  /** For addresses that tenants name. */
  readonly outbound: Outbound;
  /** Told of what looks like an attack. */
  readonly watch: SecurityWatch;
}
