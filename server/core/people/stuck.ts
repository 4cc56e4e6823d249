// What a feature reports as stuck, for the people who run the installation.
import type { StuckItem } from "../../../protocol/index.ts";

export interface Stuck extends Omit<StuckItem, "since" | "tenantId"> {
  readonly tenantId: string | null;
  readonly since: Date;
}

/** Reads at most `limit` items of each of its kinds, oldest first, by an index. */
export type FindStuck = (limit: number) => Promise<readonly Stuck[]>;
