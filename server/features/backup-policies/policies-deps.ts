// What the feature of backup policies is made of.
import type { Clients } from "../../core/database.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Backing } from "../apps/index.ts";
import type { Places } from "../backup-destinations/index.ts";
import type { PolicyBackups } from "../backups/index.ts";
import type { FeatureKit } from "../kit.ts";
import type { RetainingDeps } from "./retaining.ts";
import type { TargetsDeps } from "./targets.ts";

export interface PoliciesDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan">, TargetsDeps, Pick<RetainingDeps, "retentionDays"> {
  readonly apps: () => Backing;
  readonly backups: () => PolicyBackups;
  readonly destinations: () => Pick<Places, "hold">;
  readonly timezoneOf: (db: Clients, scope: SystemScope) => Promise<string>;
}
