// The fleet of a rollout, as the feature of fleets hands it over.
import type { FleetSelector } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { SystemScope } from "../../core/scope.ts";

export interface RolloutFleet {
  readonly fleetId: string;
  readonly name: string;
  readonly selector: FleetSelector | null;
  readonly updatePolicyId: string | null;
}
export type FindFleet = (db: Clients, scope: SystemScope, fleetId: string) => Promise<RolloutFleet | null>;
