// Answers kept under idempotency keys, sealed, for a day. An answer is written in the transaction of its effect, so PostgreSQL alone says whether
// a request has happened: both are there or neither is. Nothing is claimed ahead of the effect, hence nothing has to be given back or taken over.
import type { SqlTx } from "../core/events.ts";
import type { IdempotencyStore, IdempotentCall, KnownCall } from "../core/idempotency.ts";
import type { Job } from "./jobs.ts";
import type { SecretBox } from "./secrets.ts";

export interface IdempotencyDeps {
  readonly db: SqlTx;
  readonly secretBox: SecretBox;
}

export interface Idempotency extends IdempotencyStore {
  readonly jobs: readonly Job[];
}

const LIFE_HOURS = 24;
const SWEEP_ROWS = 1_000;

// The lock is tried, never waited for: repeats of a slow call must not hold connections.
const LOCK = "select pg_try_advisory_xact_lock(hashtextextended('idempotency key ' || $1, 0)) as mine";
const FIND = "select fingerprint = $2 as same, status, answer, created_at, expires_at <= now() as expired from idempotency_keys where scope = $1";
// Should the row exist in spite of the lock, this error undoes the effect.
const KEEP = `insert into idempotency_keys (scope, tenant_id, fingerprint, status, answer, expires_at)
  values ($1, $2, $3, $4, $5, now() + make_interval(hours => ${LIFE_HOURS}))`;

interface KeyRow {
  readonly same: boolean;
  readonly status: number;
  readonly answer: Uint8Array;
  readonly created_at: Date;
  readonly expired: boolean;
}

export const createIdempotency = ({ db, secretBox }: IdempotencyDeps): Idempotency => {
  const known = (scope: string, { same, status, answer, created_at }: KeyRow): KnownCall =>
    same ? { kind: "replay", status, body: bodyOf(secretBox.open(answer, contextOf(scope))) } : { kind: "reused", firstSeenAt: created_at };

  return {
    find: async (call) => {
      const scope = scopeOf(call);
      const [row] = await db.query<KeyRow>(FIND, [scope, call.fingerprint]);
      return row === undefined || row.expired ? null : known(scope, row);
    },
    claim: async (tx, call) => {
      const scope = scopeOf(call);
      // Two statements, since the second has to see what the last holder of the lock committed.
      const [[lock], [row]] = await Promise.all([tx.query<{ mine: boolean }>(LOCK, [scope]), tx.query<KeyRow>(FIND, [scope, call.fingerprint])]);
      if (row !== undefined && !row.expired) return known(scope, row);
      if (lock?.mine !== true) return { kind: "in_progress" };
      if (row !== undefined) await tx.query("delete from idempotency_keys where scope = $1", [scope]);
      return null;
    },
    keep: async (tx, call, { status, body }) => {
      const scope = scopeOf(call);
      const answer = secretBox.seal(JSON.stringify({ body }), contextOf(scope));
      const written = tx.query(KEEP, [scope, call.tenantId ?? NO_TENANT, call.fingerprint, status, answer]);
      // It decides nothing more, so COMMIT need not wait for its answer.
      if (tx.defer === undefined) await written;
      else tx.defer(written);
    },
    jobs: [
      {
        name: "idempotency.forget",
        everyMs: 60_000,
        run: async () => {
          const rows = await db.query(
            `delete from idempotency_keys where scope in (select scope from idempotency_keys where expires_at <= now() limit ${SWEEP_ROWS}) returning scope`,
          );
          return rows.length === SWEEP_ROWS;
        },
      },
    ],
  };
};

const NO_TENANT = "-";
const scopeOf = ({ tenantId, scope }: IdempotentCall): string => `${tenantId ?? NO_TENANT}|${scope}`;
const contextOf = (scope: string): string => `idempotency|${scope}`;

const bodyOf = (json: string): unknown => {
  const stored: unknown = JSON.parse(json);
  return typeof stored === "object" && stored !== null ? Reflect.get(stored, "body") : undefined;
};
