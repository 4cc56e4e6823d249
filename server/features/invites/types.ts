// The dependencies of the invites feature, and the rules that its parts share.
import type { Log } from "../../platform/telemetry/log.ts";
import type { FeatureKit } from "../kit.ts";
import type { Grants } from "../roles/index.ts";
import type { Tenants } from "../tenants/index.ts";

export interface InvitesDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "audit" | "plan" | "mails"> {
  readonly grants: Pick<Grants, "check" | "checkRank" | "join" | "resolve" | "forget">;
  readonly tenants: Pick<Tenants, "counters" | "lookup" | "memberships" | "members" | "nameOf">;
  readonly log: Pick<Log, "info">;
  readonly settings: InviteSettings;
}

export interface InviteSettings {
  /** Known once the listener is open, so read at each use. */
  portalUrl(): string;
  /** Invites a tenant may make in an hour; null lifts the limit. */
  readonly perHour: number | null;
}
