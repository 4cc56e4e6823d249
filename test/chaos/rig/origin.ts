// The origin of every rig: a migrated database with one tenant, made once per process and build, and copied for each rig.
import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { bootstrap } from "../../../agent-sim/bootstrap.ts";
import type { TenantCredentials } from "../../../agent-sim/fleet/portal.ts";
import { plainEnv } from "../../kit/net/children.ts";
import { makeFolder } from "../../kit/setup/workspace.ts";
import { createNode, OWN_ROOT } from "./node.ts";
import { createPostgres, type Postgres } from "./postgres.ts";

export interface Origin {
  readonly database: Pick<Postgres, "copyTo">;
  readonly credentials: TenantCredentials;
  /** The key that sealed the origin's secrets; every rig uses it. */
  readonly masterKey: string;
}

const LIMITS_OFF = Object.fromEntries(
  ["STANDARD", "TENANT", "AGENT", "HEARTBEAT", "ANONYMOUS", "PAIRING", "FAILED_AUTH", "CONNECT"].map((name) => [`RATE_LIMIT_${name}`, "off"]),
);
/** The environment of all gateways of all rigs. */
export const COMMON_ENV = {
  ...LIMITS_OFF,
  HOST: "127.0.0.1",
  LOG_LEVEL: "error",
  ACCEPT_PER_SECOND: "4000",
  COMMAND_QUEUE_PER_DEVICE: "2000",
  SHUTDOWN_SECONDS: "20",
  // One tenant makes all calls.
  DATABASE_TENANT_PERCENT: "100",
  // Several gateways share one machine here, so event loop delay means nothing.
  OVERLOAD_LOOP_MS: "60000",
  LEAVE_NOTICE_SECONDS: "0",
  DRAIN_WINDOW_SECONDS: "0",
} as const;

const make = async (root: string): Promise<Origin> => {
  const folder = makeFolder("origin");
  const masterKey = randomBytes(32).toString("base64");
  const database = await createPostgres({ folder });
  try {
    await database.start();
    const env = { ...COMMON_ENV, DATA_DIR: join(folder, "data"), MASTER_KEY: masterKey, DATABASE_URL: database.url(database.port) };
    // The first start migrates the database.
    const node = await createNode("origin", env, root);
    try {
      await node.start();
      const { apiKey, tenantId } = await bootstrap({ name: "Chaos", slug: `chaos-${randomUUID().slice(0, 8)}` }, { ...plainEnv(), ...env }, root);
      return { database, credentials: { apiKey, tenantId }, masterKey };
    } finally {
      await node.stop();
    }
  } finally {
    await database.stop();
  }
};

const made = new Map<string, Promise<Origin>>();
/** Migrated by the gateway of the package in `root`. */
export const origin = (root = OWN_ROOT): Promise<Origin> => {
  const known = made.get(root) ?? make(root);
  made.set(root, known);
  return known;
};
