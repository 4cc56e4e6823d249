// The sentences of the nodes' screen.
import type { StuckItem } from "@mooring/client";
import type { inferOutput } from "@trpc/tanstack-react-query";
import type { api } from "../../api/client.ts";
import { counted, numbers } from "../../ui/count.ts";

/** Each thing that a node depends on. */
export type Dependency = keyof inferOutput<typeof api.health.deep>["dependencies"];

export const text = {
  title: "Nodes",
  notYours: "Only administrators of this installation see its nodes.",
  number: (count: number) => numbers.format(count),
  tabs: { nodes: "Nodes", stuck: "Stuck", jobs: "Jobs" },
  node: {
    id: "Node",
    state: "State",
    sockets: "Sockets",
    ready: "Ready",
    address: "Address",
    version: "Version",
    started: "Up for",
    seen: "Reported",
    states: { healthy: "healthy", draining: "draining", overloaded: "overloaded" },
    none: "No node reports. This page came from one that has just started: it reports within seconds.",
    action: "Action",
    drain: "Drain",
    drainTitle: (nodeId: string) => `Drain ${nodeId}?`,
    drainEffect: (ready: number) =>
      `The node stops accepting agents and moves its ${numbers.format(ready)} to other nodes. It keeps running until you stop it; only a restart makes it accept agents again.`,
  },
  dependencies: {
    title: "Dependencies of this node",
    names: {
      database: "Database",
      objectStore: "Object store",
      billingProvider: "Billing provider",
      mail: "Mail",
      agentBinaries: "Agent binaries",
      sloTracking: "SLO tracking",
    } satisfies Readonly<Record<Dependency, string>>,
    latency: (ms: number) => `${numbers.format(Math.round(ms))} ms`,
    unset: "not configured",
  },
  stuck: {
    none: "Nothing is stuck.",
    truncated: "There is more than this list shows.",
    kind: "What",
    id: "Id",
    since: "Since",
    reason: "Why",
    whatToDo: "What to do",
    waitsFor: (id: string) => `Waits for ${id}`,
    ofTenant: (tenantId: string) => `of ${tenantId}`,
    kinds: {
      command_overdue: "Command past its deadline",
      command_blocked: "Command blocked",
      outcome_untold: "Outcome not told",
      event_undispatched: "Event not sent",
      deletion_overdue: "Deletion overdue",
      metrics_behind: "Metrics behind",
      subscription_overdue: "Subscription overdue",
      subscription_uncanceled: "Subscription not canceled",
      load_test_lost: "Load test lost",
      mail_failed: "Mail failed",
      mail_late: "Mail late",
      job_failing: "Job failing",
      node_silent: "Node silent",
    } as Readonly<Record<StuckItem["kind"], string>>,
  },
  jobs: {
    none: "No background jobs.",
    name: "Job",
    every: "Runs every",
    last: "Last run",
    took: "Took",
    state: "State",
    never: "not yet",
    action: "Action",
    run: "Run now",
    asked: "Asked",
    failing: (times: number) => `failed ${counted(times, "time")} in a row`,
    ok: "ok",
  },
} as const;
