// Finds the session of a call. Caches it for a moment and records when sessions were used.

import type { SessionId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import { secretHash } from "../../core/ids.ts";
import type { SessionLookup, SessionRecord } from "../../core/ports/lookups.ts";
import { chunk } from "../../core/rows/chunk.ts";
import { createCached } from "../../core/structures/cached.ts";
import type { Job } from "../../platform/jobs.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import { deleteOver, findSession, type SessionRow, writeSessionUses } from "./store.ts";

// A session that ended through another node works on this one for up to this long, and its streams until their next check, two seconds later.
const CACHE_MS = 2_000;
const WRITE_USES_MS = 60_000;
const SWEEP_MS = 3_600_000;
const ROWS_PER_STATEMENT = 1_000;
/** 32 bytes as base64url. */
const SECRET = /^[\w-]{43}$/;

export interface SessionLookupDeps {
  readonly db: Clients;
  readonly clock: Clock;
  readonly secretBox: Pick<SecretBox, "deriveAll">;
  readonly idleSeconds: number;
}

/** Bound to the session and known to nobody without the master key, so a planted cookie cannot make one that fits. */
export const csrfTokenOf = (secretBox: Pick<SecretBox, "derive">, sessionId: string): string =>
  Buffer.from(secretBox.derive(`csrf|${sessionId}`)).toString("base64url");

/** While the master key changes, a browser may still hold the token of the other key. */
const csrfTokensOf = (secretBox: Pick<SecretBox, "deriveAll">, sessionId: string): readonly string[] =>
  secretBox.deriveAll(`csrf|${sessionId}`).map((bytes) => Buffer.from(bytes).toString("base64url"));

export const createSessionLookup = ({ db, clock, secretBox, idleSeconds }: SessionLookupDeps) => {
  const toRecord = ({ sessionId, userId, claimedTenantId, createdAt, user }: SessionRow): SessionRecord => ({
    sessionId: sessionId as SessionId, // as: the column holds nothing else
    userId,
    email: user.email,
    emailVerified: user.emailVerified,
    claimedTenantId,
    csrfTokens: csrfTokensOf(secretBox, sessionId),
    signedInAt: createdAt,
  });
  const read = async (key: Parameters<typeof findSession>[1]): Promise<SessionRecord | null> => {
    const row = await findSession(db, key, idleSeconds, clock.now());
    return row === null ? null : toRecord(row);
  };
  // Cached by hash, so the process holds no secret in memory.
  const byHash = createCached<SessionRecord>({ load: (hex) => read({ hash: Buffer.from(hex, "hex") }), clock, ttlMs: CACHE_MS });
  const byId = createCached<SessionRecord>({ load: (sessionId) => read({ sessionId }), clock, ttlMs: CACHE_MS });
  let uses = new Set<string>();

  const used = (record: SessionRecord | null): SessionRecord | null => {
    if (record !== null) uses.add(record.sessionId);
    return record;
  };
  const lookup: SessionLookup = {
    find: async (secret) => (SECRET.test(secret) ? used(await byHash.get(secretHash(secret).toString("hex"))) : null),
    byId: async (sessionId) => used(await byId.get(sessionId)),
  };

  const write = async (): Promise<void> => {
    const written = [...uses];
    uses = new Set();
    for (const some of chunk(written, ROWS_PER_STATEMENT)) await writeSessionUses(db, some, clock.now());
  };
  const jobs: readonly Job[] = [
    { name: "sessions.write-uses", everyMs: WRITE_USES_MS, run: write },
    { name: "sessions.delete-expired", everyMs: SWEEP_MS, run: () => deleteOver(db, idleSeconds, clock.now()) },
  ];
  // People seldom sign out, so a change simply empties the caches.
  const forgetAll = (): void => {
    byHash.forgetAll();
    byId.forgetAll();
  };
  return { lookup, jobs, forgetAll };
};
