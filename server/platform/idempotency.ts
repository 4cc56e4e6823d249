// Repeated requests: of all that carry one key exactly one runs, the others get its answer, sealed in the database for a day.
import type { Job } from "./jobs.ts";
import type { SecretBox } from "./secrets.ts";

/** The part of the database that is needed. */
interface Sql {
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

export interface IdempotencyDeps {
  readonly db: Sql;
  readonly secretBox: SecretBox;
}

export interface IdempotentCall {
  /** Null outside of tenants. */
  readonly tenantId: string | null;
  /** Principal, operation and key. */
  readonly scope: string;
  /** SHA-256 of what the caller asks for. */
  readonly fingerprint: Uint8Array;
}

export interface StoredAnswer {
  readonly status: number;
  readonly body: unknown;
}

export type Begun =
  /** The caller runs, and then says either of the two. Saying it after the lock was taken over changes nothing. */
  | { readonly kind: "run"; done(answer: StoredAnswer): Promise<void>; abandon(): Promise<void> }
  | ({ readonly kind: "replay" } & StoredAnswer)
  | { readonly kind: "reused"; readonly firstSeenAt: Date }
  | { readonly kind: "in_progress" };

export interface Idempotency {
  begin(call: IdempotentCall): Promise<Begun>;
  readonly jobs: readonly Job[];
}

// Longer than any call may run. A holder that died leaves the key to the next who asks after that.
const LOCK_SECONDS = 30;
const LIFE_HOURS = 24;
const SWEEP_ROWS = 1_000;
// The row can vanish between the two statements of begin only by abandon or by the sweep.
const ATTEMPTS = 5;

const CLAIM = `
  insert into idempotency_keys as held (scope, tenant_id, fingerprint, locked_until, expires_at)
  values ($1, $2, $3, now() + make_interval(secs => ${LOCK_SECONDS}), now() + make_interval(hours => ${LIFE_HOURS}))
  on conflict (scope) do update
    set fingerprint = excluded.fingerprint, status = null, answer = null, locked_until = excluded.locked_until, created_at = now(), expires_at = excluded.expires_at
    where held.expires_at <= now() or (held.status is null and held.locked_until <= now() and held.fingerprint = excluded.fingerprint)
  returning xmin::text as version`;

interface KeyRow {
  readonly same: boolean;
  readonly status: number | null;
  readonly answer: Uint8Array | null;
  readonly created_at: Date;
}

export const createIdempotency = ({ db, secretBox }: IdempotencyDeps): Idempotency => {
  // Who holds the lock is told by the version of its row, which every takeover changes.
  const running = (scope: string, version: string): Begun => ({
    kind: "run",
    done: async ({ status, body }) => {
      const answer = secretBox.seal(JSON.stringify({ body }), contextOf(scope));
      await db.query("update idempotency_keys set status = $3, answer = $4 where scope = $1 and xmin::text = $2 and status is null", [
        scope,
        version,
        status,
        answer,
      ]);
    },
    abandon: async () => {
      await db.query("delete from idempotency_keys where scope = $1 and xmin::text = $2 and status is null", [scope, version]);
    },
  });

  const seen = (scope: string, { same, status, answer, created_at }: KeyRow): Begun => {
    if (!same) return { kind: "reused", firstSeenAt: created_at };
    if (status === null || answer === null) return { kind: "in_progress" };
    return { kind: "replay", status, body: bodyOf(secretBox.open(answer, contextOf(scope))) };
  };

  const begin = async ({ tenantId, scope: ownScope, fingerprint }: IdempotentCall): Promise<Begun> => {
    const scope = `${tenantId ?? "-"}|${ownScope}`;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const [claimed] = await db.query<{ version: string }>(CLAIM, [scope, tenantId ?? "-", fingerprint]);
      if (claimed !== undefined) return running(scope, claimed.version);
      const [row] = await db.query<KeyRow>("select fingerprint = $2 as same, status, answer, created_at from idempotency_keys where scope = $1", [
        scope,
        fingerprint,
      ]);
      if (row !== undefined) return seen(scope, row);
    }
    return { kind: "in_progress" };
  };

  const forgetExpired = async (): Promise<boolean> => {
    const rows = await db.query(
      `delete from idempotency_keys where scope in (select scope from idempotency_keys where expires_at <= now() limit ${SWEEP_ROWS}) returning scope`,
    );
    return rows.length === SWEEP_ROWS;
  };
  return { begin, jobs: [{ name: "idempotency.forget", everyMs: 60_000, run: forgetExpired }] };
};

const contextOf = (scope: string): string => `idempotency|${scope}`;

const bodyOf = (json: string): unknown => {
  const stored: unknown = JSON.parse(json);
  return typeof stored === "object" && stored !== null ? Reflect.get(stored, "body") : undefined;
};
