// Metrics of a node's foundation: its release, its connections to PostgreSQL and the events that wait in the outbox.

import type { StandbyFigures } from "../database/durability.ts";
import type { PoolFigures } from "../database/pool.ts";
import type { OutboxFigures } from "../outbox/outbox-rows.ts";
import type { Makers } from "./metrics-makers.ts";

export interface BuildFacts {
  readonly version: string;
  readonly commit: string;
}

export interface DatabaseFigures {
  readonly pool: () => PoolFigures;
  readonly outbox: () => Promise<OutboxFigures>;
  readonly standbys: () => Promise<readonly StandbyFigures[]>;
  readonly unsafeSettings: () => Promise<readonly string[]>;
  readonly clockOffsetMs: () => number;
}

export const watchBuild = ({ gauge }: Makers, { version, commit }: BuildFacts): void =>
  gauge({ name: "build_info", help: "Always 1; release, commit and Node version are its labels", labels: ["version", "commit", "node"] }, () => [
    [{ version, commit, node: process.versions.node }, 1],
  ]);

const UNKNOWN: OutboxFigures = { undispatched: Number.NaN, oldestSeconds: Number.NaN };

/** Call the returned function before each scrape: the scrape's own statements use connections too. */
export const watchDatabase = ({ gauge }: Makers, { pool, outbox, standbys, unsafeSettings, clockOffsetMs }: DatabaseFigures): (() => void) => {
  let seen = pool();
  gauge({ name: "db_pool_connections", help: "Connections of this node to PostgreSQL: all, and those that are idle", labels: ["state"] }, () => [
    [{ state: "total" }, seen.total],
    [{ state: "idle" }, seen.idle],
  ]);
  gauge({ name: "db_pool_waiting", help: "Calls of this node that wait for a connection to PostgreSQL" }, () => seen.waiting);
  gauge(
    {
      name: "db_class_sessions",
      help: "Sessions that each class of work holds, and calls of it that wait for one: agents, writes, lists, jobs",
      labels: ["class", "state"],
    },
    () =>
      seen.classes.flatMap(([workClass, { taken, waiting }]) => [
        [{ class: workClass, state: "taken" }, taken],
        [{ class: workClass, state: "waiting" }, waiting],
      ]),
  );
  gauge(
    { name: "db_share_refusals", help: "Calls refused since the start because their tenant held its share of the class's sessions", labels: ["class"] },
    () => seen.classes.map(([workClass, { refused }]) => [{ class: workClass }, refused]),
  );
  gauge(
    {
      name: "database_standby_lag_bytes",
      help: "Write-ahead log that a connected standby does not have on disk; mode: synchronous, asynchronous, or unknown without the right to see it",
      labels: ["standby", "mode"],
    },
    async () => (await standbys().catch(() => [])).map(({ standby, mode, lagBytes }) => [{ standby, mode }, lagBytes]),
  );
  gauge(
    { name: "database_unsafe_settings", help: "1 for each setting of PostgreSQL that is off and lets a crash take back confirmed calls", labels: ["setting"] },
    async () => (await unsafeSettings().catch(() => [])).map((setting) => [{ setting }, 1]),
  );
  gauge(
    { name: "clock_offset_seconds", help: "This node's clock minus the database's, which decides deadlines and signatures on every node" },
    () => clockOffsetMs() / 1_000,
  );
  // One statement serves both gauges of a scrape; both read NaN while the database is away.
  let asked: Promise<OutboxFigures> | null = null;
  const once = (): Promise<OutboxFigures> => {
    asked ??= outbox()
      .catch(() => UNKNOWN)
      .finally(() => {
        asked = null;
      });
    return asked;
  };
  gauge(
    { name: "outbox_undispatched_events", help: "Events that are committed and not dispatched yet, counted up to 10000" },
    async () => (await once()).undispatched,
  );
  gauge(
    { name: "outbox_oldest_undispatched_seconds", help: "Age of the oldest event that is not dispatched yet; 0 when there is none" },
    async () => (await once()).oldestSeconds,
  );
  return () => {
    seen = pool();
  };
};
