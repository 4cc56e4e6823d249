// From single checks to one word.
import type { Dependency, HealthCheckResult } from "../../../protocol/index.ts";

export type Status = HealthCheckResult["status"];

// An answer this late is an answer, but not a healthy one.
export const SLOW_MS = 500;

export interface Judged {
  readonly required: boolean;
  readonly status: Status;
}

/** A required part that is down takes the service with it; anything else that is not well only degrades it. */
export const overall = (checks: readonly Judged[]): Status => {
  if (checks.some(({ required, status }) => required && status === "unhealthy")) return "unhealthy";
  return checks.some(({ status }) => status !== "healthy") ? "degraded" : "healthy";
};

/** A dependency that was never configured is no fault. */
export const notConfigured = (what: string): Dependency => ({ status: "healthy", message: `${what} is not configured`, configured: false });

export const slowed = (status: Status, latencyMs: number): Status => (status === "healthy" && latencyMs > SLOW_MS ? "degraded" : status);
