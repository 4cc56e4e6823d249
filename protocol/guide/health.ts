// Guide to health and status.
import type { Guide } from "./guide.ts";
import { AT } from "./records.ts";

const dependency = (name: string) => ({ status: "healthy", message: `${name} is not configured`, configured: false });

export const health: Guide<"health"> = {
  check: {
    description:
      "Returns the service's overall status. If it is `unhealthy`, the response is 503 with the same record. A failed optional dependency makes it `degraded`.",
    output: { status: "healthy", timestamp: AT, version: "0.3.0" },
  },
  full: {
    description: "Returns every check of this node with its result and duration. Checks run at most once a second, however often you ask.",
    output: {
      overall: "healthy",
      checks: [{ name: "database", status: "healthy", message: "answers", durationMs: 1.2, timestamp: AT }],
      timestamp: AT,
      uptime: 86_400_000,
      version: "0.3.0",
    },
  },
  ready: {
    description: "For load balancers: 200 while this node accepts new work, 503 before that and as soon as it begins to shut down.",
    output: {
      ready: true,
      checks: [
        { name: "database", status: "healthy" },
        { name: "accepting", status: "healthy" },
      ],
      timestamp: AT,
    },
  },
  live: {
    description: "For supervisors that restart a dead process. It checks no dependency, so a database outage never causes a restart.",
    output: { alive: true, timestamp: AT, uptime: 86_400_000 },
  },
  deep: {
    description: "Checks every dependency, at most every ten seconds. Dependencies that are not configured are listed but do not affect the status.",
    output: {
      status: "healthy",
      timestamp: AT,
      version: "0.3.0",
      dependencies: {
        database: { status: "healthy", message: "answers", latencyMs: 1.2, configured: true },
        objectStore: dependency("objectStore"),
        mail: dependency("mail"),
        billingProvider: dependency("billingProvider"),
      },
    },
  },
  status: {
    description: "Returns what a public status page shows: the overall status, the components and the open incidents.",
    output: { status: "healthy", incidents: [], components: [{ name: "database", status: "healthy" }] },
  },
};
