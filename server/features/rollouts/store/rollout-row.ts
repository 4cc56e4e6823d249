// The rows of rollouts with the types of what their columns hold.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { FleetId, Id, Rollout, RolloutStatus, RolloutStep, UpdateSettings } from "../../../../protocol/index.ts";
import type { StoredPhase } from "../rules/phases.ts";

type Narrowed = {
  readonly rolloutId: Id<"rlt">;
  readonly fleetId: FleetId;
  readonly updatePolicyId: Id<"upl"> | null;
  readonly settings: UpdateSettings;
  readonly target: Rollout["target"];
  readonly conflicts: Rollout["conflicts"];
  readonly status: RolloutStatus;
  readonly statusReason: Rollout["statusReason"];
  readonly waitingFor: Rollout["waitingFor"];
  readonly phases: readonly StoredPhase[];
  readonly retryOf: Id<"rlt"> | null;
  readonly rollbackOf: Id<"rlt"> | null;
  readonly followOf: Id<"rlt"> | null;
  readonly steps: readonly RolloutStep[];
};
/** A row with the types of what its columns hold. */
export type RolloutRow = Omit<Prisma.RolloutModel, keyof Narrowed> & Narrowed;
export const toRolloutRow = (row: Prisma.RolloutModel): RolloutRow => row as unknown as RolloutRow; // as: only this feature writes the columns
