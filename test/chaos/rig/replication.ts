// A standby of the rig's database: it replicates over its own connection and takes over on promotion.
import { chown, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import type { Origin } from "./origin.ts";
import { createPostgres, type Postgres, type PostgresSettings } from "./postgres.ts";
import type { FaultProxy } from "./proxy.ts";
import { ask } from "./sql.ts";

const NAME = "standby";
const FOLLOWS_MS = 30_000;

export interface Standby {
  readonly postgres: Postgres;
  /** The proxy between the two servers. */
  readonly line: FaultProxy;
  /** Resolves once it accepts writes. */
  promote(): Promise<void>;
}

/** Settings of the leader. `sync`: a commit is answered once the standby has it on disk. */
export const leading = (kind: "sync" | "async"): PostgresSettings => ({
  wal_keep_size: "512MB",
  synchronous_standby_names: kind === "sync" ? NAME : "",
});

export interface StandbyOptions {
  readonly folder: string;
  readonly origin: Origin;
  readonly leader: Postgres;
  readonly line: FaultProxy;
}

/** Both servers are copies of one origin, so the standby can follow from the leader's first byte. */
export const createStandby = async ({ folder, origin, leader, line }: StandbyOptions): Promise<Standby> => {
  const settings = {
    primary_conninfo: `host=127.0.0.1 port=${line.port} user=rig application_name=${NAME}`,
    hot_standby: "on",
    wal_retrieve_retry_interval: "200ms",
  };
  const postgres = await createPostgres({ folder, from: origin.database, settings });
  const [data, signal] = [join(folder, "pg"), join(folder, "pg", "standby.signal")];
  await writeFile(signal, "");
  const { uid, gid } = await stat(data);
  await chown(signal, uid, gid);
  await postgres.start();
  const follows = { yes: false, asking: false };
  const inquire = async (): Promise<void> => {
    const rows = await ask<{ state: string }>(leader, "select state from pg_stat_replication where application_name = $1", [NAME]);
    follows.yes = rows[0]?.state === "streaming";
  };
  const look = (): boolean => {
    if (!follows.asking) {
      follows.asking = true;
      void inquire()
        .catch(() => undefined)
        .finally(() => {
          follows.asking = false;
        });
    }
    return follows.yes;
  };
  if (!(await until(time, look, { everyMs: 50, withinMs: FOLLOWS_MS }))) throw new Error("the standby does not follow");
  return {
    postgres,
    line,
    promote: async () => {
      const [row] = await ask<{ done: boolean }>(postgres, "select pg_promote(true, 15) as done");
      if (row?.done !== true) throw new Error("the standby was not promoted in time");
    },
  };
};
