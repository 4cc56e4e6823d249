// Health and status, explained.
import type { Guide } from "./guide.ts";
import { AT } from "./records.ts";

const dependency = (name: string) => ({ status: "healthy", message: `${name} is not configured`, configured: false });

export const health: Guide<"health"> = {
  check: {
    description: "One word about the service. `unhealthy` is answered with 503 and the same record; an optional part that fails makes it `degraded`.",
    output: { status: "healthy", timestamp: AT, version: "0.1.0" },
  },
  full: {
    description: "Every check that this node makes, with its result and duration. Checks run at most once a second, however often you ask.",
    output: {
      overall: "healthy",
      checks: [{ name: "database", status: "healthy", message: "answers", durationMs: 1.2, timestamp: AT }],
      timestamp: AT,
      uptime: 86_400_000,
      version: "0.1.0",
    },
  },
  ready: {
    description: "For load balancers: 200 while this node takes new work, 503 before it does and from the moment it begins to shut down.",
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
    description: "For supervisors that restart a dead process. It asks no other part, so a database that is away never causes a restart.",
    output: { alive: true, timestamp: AT, uptime: 86_400_000 },
  },
  deep: {
    description: "Asks every dependency, at most every ten seconds. Parts that are not configured are shown and do not count.",
    output: {
      status: "healthy",
      timestamp: AT,
      version: "0.1.0",
      dependencies: {
        database: { status: "healthy", message: "answers", latencyMs: 1.2, configured: true },
        objectStore: dependency("objectStore"),
        billingProvider: dependency("billingProvider"),
      },
    },
  },
  status: {
    description: "What a public status page shows: one word, the components and the open incidents.",
    output: { status: "healthy", incidents: [], components: [{ name: "database", status: "healthy" }] },
  },
};
