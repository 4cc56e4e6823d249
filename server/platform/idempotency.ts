// Keeps answers under idempotency keys, sealed, for a day. The transaction of the effect writes the answer, so both exist or neither does.
// Nothing is claimed ahead of the effect, so nothing has to be given back or taken over.

import type { SqlTx } from "../core/events.ts";
import type { IdempotencyStore, IdempotentCall, KnownCall } from "../core/ports/idempotency.ts";
import { deleteByTime, type ExpiryBatch, type ExpiryStep, inRounds, runExpiry } from "../core/rows/retention.ts";
import { statement } from "../core/statements.ts";
import type { Job } from "./jobs.ts";
import type { SealedContext } from "./keys/sealed.ts";
import type { SecretBox } from "./keys/secrets.ts";

export interface IdempotencyDeps {
  readonly db: SqlTx;
  readonly secretBox: SecretBox;
}

export interface PostgresIdempotencyStore extends IdempotencyStore {
  readonly jobs: readonly Job[];
}

const LIFE_HOURS = 24;
const SWEEP_ROWS = 1_000;

// Try the lock, never wait for it: repeats of a slow call must not hold connections.
const LOCK = statement<{ readonly mine: boolean }>(
  "idempotency.lock",
  "select pg_try_advisory_xact_lock(hashtextextended('idempotency key ' || $1 || '|' || $2, 0)) as mine",
);

interface KeyRow {
  readonly same: boolean;
  readonly status: number;
  readonly answer: Uint8Array;
  readonly created_at: Date;
  readonly expired: boolean;
}

const FIND = statement<KeyRow>(
  "idempotency.find",
  "select fingerprint = $3 as same, status, answer, created_at, expires_at <= now() as expired from idempotency_keys where tenant_id = $1 and scope = $2",
);
const DELETE = statement("idempotency.delete", "delete from idempotency_keys where tenant_id = $1 and scope = $2");

// If the row exists in spite of the lock, the error undoes the effect.
const KEEP = statement(
  "idempotency.keep",
  `insert into idempotency_keys (tenant_id, scope, fingerprint, status, answer, expires_at)
   values ($1, $2, $3, $4, $5, now() + make_interval(hours => ${LIFE_HOURS}))`,
);
const DELETE_EXPIRED = statement<ExpiryStep>("idempotency.deleteExpired", deleteByTime({ table: "idempotency_keys", time: "expires_at", before: "now()" }));
export const deleteExpiredKeys = (sql: Pick<SqlTx, "query">, batch: ExpiryBatch): Promise<ExpiryStep> => runExpiry(sql, DELETE_EXPIRED, batch);

export const createIdempotency = ({ db, secretBox }: IdempotencyDeps): PostgresIdempotencyStore => {
  const known = (call: IdempotentCall, { same, status, answer, created_at }: KeyRow): KnownCall =>
    same ? { kind: "replay", status, body: bodyOf(secretBox.open(answer, sealContext(call))) } : { kind: "reused", firstSeenAt: created_at };

  return {
    find: async (call) => {
      const [row] = await db.query(FIND, [...keyOf(call), call.fingerprint]);
      return row === undefined || row.expired ? null : known(call, row);
    },
    claim: async (tx, call) => {
      const key = keyOf(call);
      // Two statements: the second must see what the last holder of the lock committed.
      const [[lock], [row]] = await Promise.all([tx.query(LOCK, key), tx.query(FIND, [...key, call.fingerprint])]);
      if (row !== undefined && !row.expired) return known(call, row);
      if (lock?.mine !== true) return { kind: "in_progress" };
      if (row !== undefined) await tx.query(DELETE, key);
      return null;
    },
    keep: async (tx, call, { status, body }) => {
      const answer = secretBox.seal(JSON.stringify({ body }), sealContext(call));
      const written = tx.query(KEEP, [...keyOf(call), call.fingerprint, status, answer]);
      // Nothing depends on its result, so COMMIT need not wait for it.
      if (tx.defer === undefined) await written;
      else tx.defer(written);
    },
    jobs: [
      {
        name: "idempotency.forget",
        everyMs: 60_000,
        run: inRounds(SWEEP_ROWS, (batch) => deleteExpiredKeys(db, batch)),
      },
    ],
  };
};

const NO_TENANT = "-";
const keyOf = ({ tenantId, scope }: IdempotentCall): readonly [string, string] => [tenantId ?? NO_TENANT, scope];
const sealContext = (call: IdempotentCall): SealedContext => `idempotency|${keyOf(call).join("|")}`;

const bodyOf = (json: string): unknown => {
  const stored: unknown = JSON.parse(json);
  return typeof stored === "object" && stored !== null ? Reflect.get(stored, "body") : undefined;
};
