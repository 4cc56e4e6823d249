// Combines single checks into one status.
import type { Dependency, HealthCheckResult } from "../../../protocol/index.ts";

export type Status = HealthCheckResult["status"];

// A dependency that answers later than this is degraded.
export const SLOW_MS = 500;

export interface Judged {
  readonly required: boolean;
  readonly status: Status;
}

/** The service is unhealthy if a required dependency is; any other problem only degrades it. */
export const overall = (checks: readonly Judged[]): Status => {
  if (checks.some(({ required, status }) => required && status === "unhealthy")) return "unhealthy";
  return checks.some(({ status }) => status !== "healthy") ? "degraded" : "healthy";
};

/** An installation may leave a dependency out. */
export const notConfigured = (what: string): Dependency => ({ status: "healthy", message: `${what} is not configured`, configured: false });

export const slowed = (status: Status, latencyMs: number): Status => (status === "healthy" && latencyMs > SLOW_MS ? "degraded" : status);
