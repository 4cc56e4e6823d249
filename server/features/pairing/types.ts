// The dependencies of the pairing feature.

import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import type { Emit } from "../../core/events.ts";
import type { Flags } from "../../core/people/flags.ts";
import type { AuditTrail } from "../../core/ports/audit.ts";
import type { Memberships, TenantLookup } from "../../core/ports/lookups.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import type { DeploymentGroups } from "../deployments/index.ts";
import type { Enrol, KnownMachine, Reissue } from "../devices/index.ts";
import type { GuessDeps } from "./code-guesses.ts";

export interface PairingSettings {
  /** Known when the listener is open, so read at each use. */
  publicUrl(): string;
  portalUrl(): string;
  socketUrl(): string;
  /** Hosts that return_to may lead to, beside the portal's origin. */
  readonly returnHosts: readonly string[];
}

/** A bucket of failures per address. */
export interface Failures {
  take(ip: string): Promise<{ readonly allowed: boolean; readonly retryAfterSeconds: number; readonly limit: number; readonly resetAt: Date }>;
}

export interface PairingDeps extends Omit<GuessDeps, "db" | "clock"> {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly audit: AuditTrail;
  readonly tenants: TenantLookup;
  readonly flags: Flags;
  readonly memberships: Memberships;
  readonly enrol: Enrol;
  readonly devices: {
    exists(scope: SystemScope, deviceId: string): Promise<boolean>;
    /** The tenant's devices with these fingerprints, without removed ones. */
    withFingerprints(scope: SystemScope, fingerprints: readonly string[]): Promise<readonly KnownMachine[]>;
    readonly reissue: Reissue;
  };
  readonly deployments: Pick<DeploymentGroups, "has">;
  readonly plan: { require(tx: Tx, scope: SystemScope, resource: "enrollmentTokens", adding: number): Promise<void> };
  /** Counts wrong enrollment tokens: 3 a minute per address. */
  readonly failures: Failures;
  readonly secretBox: Pick<SecretBox, "derive">;
  readonly settings: PairingSettings;
}
