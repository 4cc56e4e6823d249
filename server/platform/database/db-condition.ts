// Whether the database serves writes: a probe on a session of its own asks, and the writes of the last seconds that failed count.
import pg from "pg";
import type { Clock } from "../../core/clock.ts";
import type { Work } from "../../core/work.ts";
import type { Log } from "../telemetry/log.ts";
import { type DatabaseHosts, readServerKind, type ServerKind } from "./database-hosts.ts";
import { meaningOf, type Readiness } from "./db-errors.ts";

const PROBE_TIMEOUT_MS = 2_000;
/** A new session soon, because a proxy may have chosen another server meanwhile. */
const PROBE_SESSION_SECONDS = 10;
/** How long a failed write counts. */
const RECENT_MS = 5_000;

const WELL: Readiness = { status: "healthy", message: "answers" };
const STANDBY: Readiness = { status: "unhealthy", message: "is not the writer: it is a standby" };
const READ_ONLY: Readiness = { status: "unhealthy", message: "refuses writes: it is read-only" };

const meant = ({ standby, read_only: readOnly }: ServerKind): Readiness => {
  if (standby) return STANDBY;
  return readOnly ? READ_ONLY : WELL;
};

export interface ConditionDeps {
  readonly hosts: DatabaseHosts;
  readonly applicationName: string;
  readonly log: Log;
  /** The probe has met another kind of server than before. */
  readonly onChange: () => void;
  readonly clock: Clock;
}

export interface DatabaseCondition {
  /** Hears of each failure of a statement or transaction. */
  noteFailure(error: unknown, work: Pick<Work, "workClass">): void;
  /** Rejects unless PostgreSQL answers soon. */
  read(): Promise<Readiness>;
  close(): Promise<void>;
}

export const createCondition = ({ hosts, applicationName, log, onChange, clock }: ConditionDeps): DatabaseCondition => {
  const pool = new pg.Pool({
    Client: class extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        super({ ...config, connectionString: hosts.current() });
      }
    },
    max: 1,
    application_name: `${applicationName}-probe`,
    connectionTimeoutMillis: PROBE_TIMEOUT_MS,
    query_timeout: PROBE_TIMEOUT_MS,
    maxLifetimeSeconds: PROBE_SESSION_SECONDS,
    keepAlive: true,
  });
  pool.on("error", () => undefined);
  let last: Readiness = WELL;
  const failed = new Map<Readiness, number>();

  const probe = async (): Promise<Readiness> => {
    const client = await pool.connect();
    let found: Readiness | undefined;
    try {
      found = meant(await readServerKind(client));
      return found;
    } finally {
      client.release(found !== WELL);
    }
  };

  /** The latest, should there be several. */
  const recent = (status: Readiness["status"]): Readiness | undefined => {
    const lately = [...failed].filter(([readiness, atMs]) => readiness.status === status && clock.elapsed() - atMs < RECENT_MS);
    return lately.reduce<readonly [Readiness | undefined, number]>((last, each) => (each[1] >= last[1] ? each : last), [undefined, 0])[0];
  };

  return {
    noteFailure: (error, { workClass }) => {
      const readiness = meaningOf(error)?.readiness ?? null;
      if (readiness === null || (workClass === "lists" && readiness.status !== "unhealthy")) return;
      failed.set(readiness, clock.elapsed());
    },
    read: async () => {
      await hosts.settling();
      const probed = await probe().catch((error: unknown) => {
        hosts.doubt();
        throw error;
      });
      if (probed !== WELL) hosts.doubt();
      if (probed !== last) {
        log.warn({ before: last.message, now: probed.message }, "the database has changed; replacing all sessions");
        last = probed;
        onChange();
      }
      return probed === WELL ? (recent("unhealthy") ?? recent("degraded") ?? WELL) : probed;
    },
    close: () => pool.end(),
  };
};
